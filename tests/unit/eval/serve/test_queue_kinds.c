/* Every field of a job and of a verdict, changed in every way: missing, of each other type, of another
 * job, too long. A submitter accepts a changed verdict only when it fits the schema. An evaluator lives
 * through all changed jobs and answers none of them with a verdict that their submitter accepts. Each
 * change of a field is one kind; the counts are checked. */
#include "tests/unit/eval/serve/hostile_queue.h"

#include <math.h>

#include "eval/judge/verdict/verdict_schema.h"

enum { LEAST_VERDICTS = 800, LEAST_JOBS = 80, LONG_TEXT = 5000 };

typedef enum {
    MISSING,
    NIL,
    FLAG,
    ZERO,
    NEGATIVE,
    HUGE_NUMBER,
    FRACTION,
    NOT_A_NUMBER,
    INFINITE,
    EMPTY,
    OTHER,
    LONG,
    WITH_NUL,
    BYTES,
    LIST,
    LIST_OF_LISTS,
    MAP,
    CHANGES
} Change;

static const char *const change_names[CHANGES] = {
    "missing",  "nil",   "a flag", "zero", "negative", "huge",  "a fraction", "NaN",
    "infinite", "empty", "other",  "long", "NUL",      "bytes", "a list",     "a list of lists",
    "a map"};

/* ---- values ---- */

static msgpack_object text_of(const char *s, size_t n)
{
    return (msgpack_object){.type = MSGPACK_OBJECT_STR, .via.str = {.size = (uint32_t)n, .ptr = s}};
}

static msgpack_object number_of(double v)
{
    return (msgpack_object){.type = MSGPACK_OBJECT_FLOAT64, .via.f64 = v};
}

static msgpack_object value_of(Change change)
{
    static char long_text[LONG_TEXT];
    static msgpack_object inner, outer;
    memset(long_text, 'x', sizeof long_text);
    inner = (msgpack_object){.type = MSGPACK_OBJECT_ARRAY};
    outer = (msgpack_object){.type = MSGPACK_OBJECT_ARRAY, .via.array = {1, &inner}};
    switch (change) {
    case FLAG: return (msgpack_object){.type = MSGPACK_OBJECT_BOOLEAN, .via.boolean = true};
    case ZERO: return (msgpack_object){.type = MSGPACK_OBJECT_POSITIVE_INTEGER};
    case NEGATIVE: return (msgpack_object){.type = MSGPACK_OBJECT_NEGATIVE_INTEGER, .via.i64 = -7};
    case HUGE_NUMBER:
        return (msgpack_object){.type = MSGPACK_OBJECT_POSITIVE_INTEGER, .via.u64 = UINT64_MAX};
    case FRACTION: return number_of(0.5);
    case NOT_A_NUMBER: return number_of(NAN);
    case INFINITE: return number_of(INFINITY);
    case EMPTY: return text_of("", 0);
    case OTHER: return text_of("other", 5);
    case LONG: return text_of(long_text, sizeof long_text);
    case WITH_NUL: return text_of("a\0b", 3);
    case BYTES: return (msgpack_object){.type = MSGPACK_OBJECT_BIN, .via.bin = {2, "\xff\xfe"}};
    case LIST: return inner;
    case LIST_OF_LISTS: return outer;
    case MAP: return (msgpack_object){.type = MSGPACK_OBJECT_MAP};
    default: return (msgpack_object){.type = MSGPACK_OBJECT_NIL};
    }
}

static int is_word(const msgpack_object_str *s, const char *word)
{
    return s->size == strlen(word) && !memcmp(s->ptr, word, s->size);
}

/* Changes field `name` of the map. Returns 0 when it has none. */
static int change_field(msgpack_object *map, const char *name, Change change)
{
    msgpack_object_map *m = &map->via.map;
    for (uint32_t i = 0; i < m->size; i++) {
        if (!is_word(&m->ptr[i].key.via.str, name)) continue;
        if (change == MISSING)
            memmove(&m->ptr[i], &m->ptr[i + 1], (--m->size - i) * sizeof *m->ptr);
        else if (change == WITH_NUL && m->ptr[i].val.type == MSGPACK_OBJECT_STR) {
            static char both[256]; /* the honest text, a NUL, and more */
            const msgpack_object_str *s = &m->ptr[i].val.via.str;
            int n = snprintf(both, sizeof both - 2, "%.*s", (int)s->size, s->ptr);
            both[n + 1] = 'x';
            m->ptr[i].val = text_of(both, (size_t)n + 2);
        } else
            m->ptr[i].val = value_of(change);
        return 1;
    }
    return 0;
}

static void pack(const msgpack_object *o, Buffer *out)
{
    msgpack_sbuffer bytes;
    msgpack_packer packer;
    msgpack_sbuffer_init(&bytes);
    msgpack_packer_init(&packer, &bytes, msgpack_sbuffer_write);
    assert_int_equal(msgpack_pack_object(&packer, *o), 0);
    buffer_clear(out);
    assert_int_equal(buffer_append(out, bytes.data, bytes.size), 0);
    msgpack_sbuffer_destroy(&bytes);
}

/* Copies the record with one field changed. in: the field's map, or NULL for the record itself.
 * Returns 0 when there is no such field. */
static int with_change(const Buffer *record, const char *in, const char *name, Change change,
                       Buffer *out)
{
    msgpack_zone zone;
    View v;
    Error err;
    assert_true(msgpack_zone_init(&zone, 4096));
    if (view_decode(record->data, record->len, "a record", &zone, &v, &err))
        fail_msg("%s", err.text);
    msgpack_object root = *v.map, *map = &root;
    for (uint32_t i = 0; in && i < root.via.map.size; i++)
        if (is_word(&root.via.map.ptr[i].key.via.str, in)) map = &root.via.map.ptr[i].val;
    int found = (!in || map != &root) && change_field(map, name, change);
    if (found) pack(&root, out);
    msgpack_zone_destroy(&zone);
    return found;
}

/* ---- verdicts ---- */

/* Texts of a closed list, or of a certain form. */
static int is_closed(const VerdictField *f)
{
    return f->storage == VERDICT_OUTCOME || f->storage == VERDICT_CEILING ||
           f->storage == VERDICT_MODE || f->storage == VERDICT_SEED || !strcmp(f->name, "key");
}

/* Whether the changed field fits the schema. */
static int fits(const VerdictField *f, Change change)
{
    if (change == MISSING) return f->optional != 0;
    switch (f->kind) {
    case 't':
        if (f->storage == VERDICT_TASK || f->storage == VERDICT_VERSION)
            return change == EMPTY || change == OTHER || change == LONG || change == WITH_NUL;
        return (change == EMPTY || change == OTHER) && !is_closed(f);
    case 'i': return change == ZERO;
    case 'f': return change >= ZERO && change <= INFINITE;
    case 'B': return change == FLAG;
    case 'm': return change == MAP && f->storage != VERDICT_TELEMETRY;
    default: return change == LIST;
    }
}

static void honest_verdict(const Job *job, Verdict *v)
{
    Digest d;
    int predicted = !strncmp(job->device, "sim:", 4);
    *v = (Verdict){.outcome = OUTCOME_OK, .score = 2, .speedup = 2.1, .low = 2, .high = 2.25};
    v->time_us = 3;
    v->baseline_us = 6.3;
    v->light_us = 1;
    v->occupancy = 0.5;
    v->registers = 32;
    v->line = 0;
    v->predicted = predicted;
    v->error_factor = predicted ? 1.4 : 0;
    v->seed = job->seed;
    v->second_seed = 9;
    v->n_checks = 1;
    snprintf(v->checks[0], sizeof v->checks[0], "check n=7");
    snprintf(v->compiler, sizeof v->compiler, "NVRTC");
    snprintf(v->device, sizeof v->device, "%s", job->device);
    snprintf(v->device_name, sizeof v->device_name, "%s", job->device);
    snprintf(v->driver, sizeof v->driver, "%s", predicted ? "" : "1");
    snprintf(v->uuid, sizeof v->uuid, "%s", predicted ? "" : "GPU-1");
    snprintf(v->task_digest, sizeof v->task_digest, "%s", job->task_digest);
    digest_of(job->source, job->source_len, &d);
    digest_hex(&d, v->source_digest);
    job_key(job, v->key);
    v->timing = calloc(1, sizeof *v->timing);
    assert_non_null(v->timing);
    DeviceTiming *t = v->timing;
    t->n = 2;
    t->candidate_us[0] = t->candidate_us[1] = 3;
    t->baseline_us[0] = t->baseline_us[1] = 6.3;
    t->candidate_launches = t->baseline_launches = t->n_counters = t->n_baseline_counters = 1;
    snprintf(t->counters[0].name, sizeof t->counters[0].name, "dram_bytes");
    t->baseline_counters[0] = t->counters[0];
    t->before.sm_mhz = t->after.sm_mhz = 1980;
    snprintf(t->lines[0], sizeof t->lines[0], "3 90%% waits");
    t->n_lines = 1;
}

static int accepted(const Job *job, const Buffer *b)
{
    Outcome outcome;
    return is_accepted(job, b->data, b->len, &outcome);
}

/* Sends every change of one field. Returns how many kinds that were. */
static int change_verdict_field(const Job *job, const Buffer *honest, const VerdictField *f)
{
    Buffer b;
    int kinds = 0;
    buffer_init(&b, QUEUE_MAX_BODY);
    for (Change c = 0; c < CHANGES; c++) {
        const char *in = f->place == VERDICT_DETAIL ? "detail" : NULL;
        if (!with_change(honest, in, f->name, c, &b)) continue;
        if (accepted(job, &b) != fits(f, c))
            fail_msg("a verdict of %s whose %s is %s: accepted %d", job->device, f->name,
                     change_names[c], accepted(job, &b));
        kinds += !fits(f, c);
    }
    buffer_release(&b);
    return kinds;
}

/* The members of a map of a verdict. */
static int change_members(const Job *job, const Buffer *honest)
{
    Buffer b;
    int kinds = 0;
    buffer_init(&b, QUEUE_MAX_BODY);
    for (Change c = NIL; c < CHANGES; c++) {
        if (c >= ZERO && c <= INFINITE) continue;
        assert_true(with_change(honest, "counters", "dram_bytes", c, &b));
        if (accepted(job, &b)) fail_msg("a counter that is %s is accepted", change_names[c]);
        kinds++;
    }
    buffer_release(&b);
    return kinds;
}

/* Adds a field that no verdict has. */
static int foreign_fields(const Job *job, const Verdict *v)
{
    static const char *const names[] = {"evil", "zzz", "", "Score"};
    int n = sizeof names / sizeof *names;
    for (int i = 0; i < n; i++) {
        Record *r = record_new();
        Buffer b;
        Error err;
        buffer_init(&b, QUEUE_MAX_BODY);
        verdict_record(v, job->task, r);
        record_text(r, names[i], "yes");
        assert_int_equal(record_encode(r, &b, &err), 0);
        if (accepted(job, &b)) fail_msg("a verdict with a field '%s' is accepted", names[i]);
        buffer_release(&b);
        record_free(r);
    }
    return n;
}

/* Every beginning of a verdict, and bytes behind one. */
static int torn(const Job *job, const Buffer *whole)
{
    Buffer b;
    buffer_init(&b, QUEUE_MAX_BODY);
    assert_int_equal(buffer_append(&b, whole->data, whole->len), 0);
    for (b.len = 0; b.len < whole->len; b.len++) assert_false(accepted(job, &b));
    assert_int_equal(buffer_append(&b, "\xc0", 1), 0);
    assert_false(accepted(job, &b));
    buffer_release(&b);
    return 2;
}

static int verdicts_of(const char *device)
{
    Job job;
    Verdict v;
    Record *r = record_new();
    Buffer b;
    Error err = {0};
    int kinds = 0;
    honest(&job, 1);
    snprintf(job.device, sizeof job.device, "%s", device);
    honest_verdict(&job, &v);
    buffer_init(&b, QUEUE_MAX_BODY);
    verdict_record(&v, job.task, r);
    assert_int_equal(record_encode(r, &b, &err), 0);
    assert_true(accepted(&job, &b));
    for (int i = 0; i < verdict_n_fields; i++)
        kinds += change_verdict_field(&job, &b, &verdict_fields[i]);
    kinds += torn(&job, &b) + change_members(&job, &b) + foreign_fields(&job, &v);
    verdict_release(&v);
    record_free(r);
    buffer_release(&b);
    return kinds;
}

static void test_verdicts(void **state)
{
    (void)state;
    int kinds = verdicts_of("sim:h100") + verdicts_of("NVIDIA H200");
    print_message("# %d kinds of verdicts\n", kinds);
    assert_true(kinds >= LEAST_VERDICTS);
}

/* ---- jobs ---- */

/* What changes nothing of the job that its key names. The key has the task's digest, not its name. */
static int is_harmless(const char *name, Change c)
{
    if (!strcmp(name, "task")) return c == EMPTY || c == OTHER;
    int optional = !strcmp(name, "not_on") || !strcmp(name, "sanitize");
    return (optional && c == MISSING) || (!strcmp(name, "not_on") && c == EMPTY);
}

static int number_of_jobs;

/* Puts a changed job on the stream under the key of its honest form. */
static int put_changed(const char *name, Change change)
{
    Job job;
    Buffer honest_body, body;
    Error err;
    char key[DIGEST_HEX];
    honest(&job, 10000 + number_of_jobs);
    job_key(&job, key);
    if (!strcmp(name, "sanitize")) job.sanitize = 1;
    if (!strcmp(name, "not_on")) snprintf(job.not_on, sizeof job.not_on, "GPU-1");
    buffer_init(&honest_body, QUEUE_MAX_BODY);
    buffer_init(&body, QUEUE_MAX_BODY);
    assert_int_equal(job_encode(&job, &honest_body, &err), 0);
    int found = with_change(&honest_body, NULL, name, change, &body);
    if (found) put_body(key, body.data, body.len);
    buffer_release(&honest_body);
    buffer_release(&body);
    return found;
}

static void test_jobs(void **state)
{
    (void)state;
    static const char *const fields[] = {"device", "harness", "not_on", "sanitize",
                                         "seed",   "source",  "task",   "task_digest"};
    lives(1);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        for (Change c = 0; c < CHANGES; c++)
            if (!is_harmless(fields[i], c)) number_of_jobs += put_changed(fields[i], c);
    print_message("# %d kinds of jobs\n", number_of_jobs);
    assert_true(number_of_jobs >= LEAST_JOBS);
    lives(2); /* it comes last in the stream */
    for (int i = 0; i < number_of_jobs; i++) {
        Job job;
        honest(&job, 10000 + i);
        if (result_of(&job).accepted) fail_msg("job kind %d is answered", i);
    }
}

/* An honest job, judged by an evaluator without the secret, is none to a submitter with it. */
static void test_sealed(void **state)
{
    (void)state;
    Job job;
    Poll p = {0};
    honest(&job, 2);
    setenv("QUERN_KEY", "sixteen bytes and more", 1);
    p = result_of(&job);
    unsetenv("QUERN_KEY");
    assert_true(p.finished);
    assert_false(p.accepted);
    assert_true(result_of(&job).accepted);
}

int main(void)
{
    if (system("redis-server --version >/dev/null 2>&1")) {
        puts("1..0 # SKIP no redis-server in PATH");
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_verdicts), cmocka_unit_test(test_jobs),
                                       cmocka_unit_test(test_sealed)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
