/* Hostile entries, jobs and verdicts against a private server: an evaluator lives through all of
 * them and judges honest jobs, and no submitter believes what is none of its job. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "eval/serve/eval_worker.h"
#include "eval/serve/job.h"
#include "eval/serve/seal.h"
#include "queue/server.h"

#define CLASS "sim:h100"
#define STREAM "{hostile." VERDICT_HARNESS "}:s:" CLASS

static Server server;
static char dir[] = "/tmp/quern-test-XXXXXX";
static redisContext *redis;
static Queue *queue;
static pid_t evaluator;

static void start_evaluator(void)
{
    evaluator = fork();
    if (evaluator) return;
    EvalWorkerOptions opt = {.runner = {.device = CLASS, .noop = 1},
                             .redis = server.url,
                             .queue = "hostile",
                             .deadline_s = 20};
    Error err;
    _exit(eval_worker_run(&opt, &err) ? 1 : 0);
}

static int set_up(void **state)
{
    Error err = {0};
    (void)state;
    setenv("QUERN_LOG", "quiet", 1);
    if (!mkdtemp(dir) || server_prepare(&server, dir, &err) || server_start(&server, &err))
        fail_msg("%s", err.text);
    redis = redisConnectUnix(server.socket);
    if (queue_open(server.url, "hostile", VERDICT_HARNESS, &queue, &err)) fail_msg("%s", err.text);
    start_evaluator();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    kill(evaluator, SIGTERM);
    waitpid(evaluator, NULL, 0);
    queue_close(queue);
    redisFree(redis);
    server_release(&server);
    return file_remove_tree(dir, NULL);
}

static void raw(int argc, const char **argv, const size_t *len)
{
    redisReply *r = redisCommandArgv(redis, argc, argv, len);
    if (!r) fail_msg("redis: %s", redis->errstr);
    freeReplyObject(r);
}

/* ---- an honest job ---- */

static Task task = {.name = "relu"};

static void honest(Job *job, int number)
{
    static char source[64];
    snprintf(source, sizeof source, "// honest %d", number);
    memset(task.digest, 'a', DIGEST_HEX - 1);
    job_init(job, &task, CLASS, source, strlen(source), 1);
}

typedef struct {
    const Job *job;
    int finished, accepted;
} Poll;

static int on_result(void *ctx, size_t i, QueueState state, const void *result, size_t len,
                     Error *err)
{
    Poll *p = ctx;
    Error why;
    (void)i, (void)err;
    p->finished = state == QUEUE_DONE || state == QUEUE_DEAD;
    p->accepted = p->finished && !job_check_verdict(p->job, result, &len, &why);
    return 0;
}

static Poll result_of(const Job *job)
{
    char key[DIGEST_HEX];
    const char *keys[] = {key};
    Poll p = {.job = job};
    Error err;
    job_key(job, key);
    if (queue_poll(queue, keys, 1, on_result, &p, &err)) fail_msg("%s", err.text);
    return p;
}

/* The evaluator is alive and answers an honest job. */
static void lives(int number)
{
    Job job;
    Buffer body;
    Error err;
    QueueState state;
    char key[DIGEST_HEX];
    Poll p = {0};
    honest(&job, number);
    job_key(&job, key);
    buffer_init(&body, QUEUE_MAX_BODY);
    assert_int_equal(job_encode(&job, &body, &err), 0);
    if (queue_enqueue(queue, CLASS, key, body.data, body.len, &state, &err))
        fail_msg("%s", err.text);
    buffer_release(&body);
    for (double end = clock_seconds() + 30; !p.finished && clock_seconds() < end;) {
        p = result_of(&job);
        if (!p.finished) clock_sleep(0.01);
    }
    assert_true(p.finished);
    assert_true(p.accepted);
    assert_int_equal(waitpid(evaluator, NULL, WNOHANG), 0);
}

/* ---- entries that are no jobs ---- */

static void add_entry(int n_fields, const char **fields, const size_t *len)
{
    const char *argv[16] = {"XADD", STREAM, "*"};
    size_t lens[16] = {4, strlen(STREAM), 1};
    for (int i = 0; i < n_fields; i++) {
        argv[3 + i] = fields[i];
        lens[3 + i] = len ? len[i] : strlen(fields[i]);
    }
    raw(3 + n_fields, argv, lens);
}

static long malformed(void)
{
    QueueStatus s[4];
    int n = 0;
    Error err;
    if (queue_status(queue, s, 4, &n, &err)) fail_msg("%s", err.text);
    return n ? s[0].malformed : 0;
}

static void test_entries(void **state)
{
    (void)state;
    enum { FORMS = 10, TIMES = 5 };
    static char large[QUEUE_MAX_BODY + 1], long_key[300];
    memset(large, 'x', sizeof large);
    memset(long_key, 'k', sizeof long_key - 1);
    const char *forms[FORMS][6] = {{"key", "", "body", "b"},
                                   {"key", "k"},
                                   {"body", "b"},
                                   {"body", "b", "key", "k"},
                                   {"key", "k", "body", "b", "more", "m"},
                                   {"x", "y"},
                                   {"key", "a\tb", "body", "b"},
                                   {"key", "\x01", "body", "b"},
                                   {"key", long_key, "body", "b"},
                                   {"", "", "", ""}};
    static const int n_fields[FORMS] = {4, 2, 2, 4, 6, 2, 4, 4, 4, 4};
    lives(0); /* the class is known, and the evaluator waits for the stream */
    long before = malformed();
    for (int t = 0; t < TIMES; t++)
        for (int f = 0; f < FORMS; f++) add_entry(n_fields[f], forms[f], NULL);
    const char *nul[] = {"key", "a\0b", "body", "b"}, *huge[] = {"key", "k", "body", large};
    add_entry(4, nul, (const size_t[]){3, 3, 4, 1});
    add_entry(4, huge, (const size_t[]){3, 1, 4, sizeof large});
    lives(1);
    assert_int_equal(malformed() - before, FORMS * TIMES + 2);
}

/* ---- jobs that are not what they say ---- */

static void put_body(const char *key, const void *body, size_t len)
{
    const char *fields[] = {"key", key, "body", body};
    add_entry(4, fields, (const size_t[]){3, strlen(key), 4, len});
}

static void encode_fields(int change, const Job *job, Buffer *out)
{
    static const char *const names[] = {"device", "harness", "source", "task", "task_digest"};
    const char *values[] = {job->device, job->harness, job->source, job->task, job->task_digest};
    static const char *const other[] = {"sim:h200", "", "NVIDIA H100", "6", "a\nb"};
    static char long_text[400];
    memset(long_text, 'x', sizeof long_text - 1);
    int field = change / 10, how = change % 10;
    Record *r = record_new();
    Error err;
    for (int i = 0; i < 5; i++) {
        if (i != field)
            record_text(r, names[i], values[i]);
        else if (how == 1)
            record_int(r, names[i], 7);
        else if (how == 2)
            record_float(r, names[i], 0.5);
        else if (how == 3)
            record_text(r, names[i], long_text);
        else if (how == 4)
            record_bytes(r, names[i], "\xff\xfe", 2);
        else if (how > 4)
            record_text(r, names[i], other[how - 5]);
    } /* how 0: the field is missing */
    record_int(r, "seed", 1);
    assert_int_equal(record_encode(r, out, &err), 0);
    record_free(r);
}

/* Bodies with one field changed, under the key of the honest job: none is judged as that job. */
static void test_bodies(void **state)
{
    (void)state;
    Job job;
    char key[DIGEST_HEX];
    honest(&job, 1000);
    job_key(&job, key);
    for (int change = 0; change < 50; change++) {
        Buffer b;
        buffer_init(&b, QUEUE_MAX_BODY);
        encode_fields(change, &job, &b);
        put_body(key, b.data, b.len);
        buffer_release(&b);
    }
    lives(2);
    Poll p = result_of(&job); /* buried with a verdict that says why, which is of no honest job */
    if (p.finished) assert_false(p.accepted);
    int gone;
    Error err;
    assert_int_equal(queue_reject(queue, CLASS, key, &gone, &err), 0);
    lives(1000); /* the same job, honestly submitted, is judged */
}

/* Torn and random bytes. */
static void test_bytes(void **state)
{
    (void)state;
    Job job;
    Buffer b;
    Error err;
    Random random;
    char key[DIGEST_HEX];
    honest(&job, 2000);
    job_key(&job, key);
    buffer_init(&b, QUEUE_MAX_BODY);
    assert_int_equal(job_encode(&job, &b, &err), 0);
    random_init(&random, 1, 2);
    for (size_t n = 0; n < b.len; n += 7) put_body(key, b.data, n);
    for (int i = 0; i < 60; i++) {
        unsigned char bytes[96];
        for (size_t k = 0; k < sizeof bytes; k++) bytes[k] = (unsigned char)random_u64(&random);
        if (i % 2) bytes[0] = (unsigned char)(0x80 | (i & 15)); /* a map of some entries */
        put_body(key, bytes, sizeof bytes);
    }
    for (int depth = 1; depth < 40; depth += 3) {
        char nested[64];
        memset(nested, 0x91, sizeof nested); /* lists in lists */
        put_body(key, nested, (size_t)depth);
    }
    buffer_release(&b);
    lives(3);
}

/* ---- verdicts of others ---- */

enum { VERDICT_CHANGES = 44 };

static void copy_field(Record *r, const View *v, uint32_t i, const char *skip)
{
    const msgpack_object_kv *kv = &v->map->via.map.ptr[i];
    char key[64];
    snprintf(key, sizeof key, "%.*s", (int)kv->key.via.str.size, kv->key.via.str.ptr);
    if (!strcmp(key, skip) || !strcmp(key, "detail")) return;
    switch (kv->val.type) {
    case MSGPACK_OBJECT_STR: record_textn(r, key, kv->val.via.str.ptr, kv->val.via.str.size); break;
    case MSGPACK_OBJECT_BOOLEAN: record_bool(r, key, kv->val.via.boolean); break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64: record_float(r, key, kv->val.via.f64); break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER: record_int(r, key, (int64_t)kv->val.via.u64); break;
    default: break;
    }
}

static void change_verdict(int change, const Job *job, Buffer *out)
{
    static const char *const texts[] = {"task",        "device",        "outcome", "harness",
                                        "task_digest", "source_digest", "key"};
    static const char *const numbers[] = {"score", "speedup", "low",
                                          "high",  "time_us", "baseline_us"};
    Verdict v = {.outcome = OUTCOME_OK, .score = 2, .speedup = 2, .low = 2, .high = 2};
    Digest d;
    Error err;
    v.time_us = v.baseline_us = 1;
    v.predicted = 1;
    snprintf(v.device, sizeof v.device, "%s", job->device);
    snprintf(v.task_digest, sizeof v.task_digest, "%s", job->task_digest);
    digest_of(job->source, job->source_len, &d);
    digest_hex(&d, v.source_digest);
    job_key(job, v.key);
    Record *r = record_new();
    double *fields[] = {&v.score, &v.speedup, &v.low, &v.high, &v.time_us, &v.baseline_us};
    int k = change - 14;
    if (k >= 0 && k < 6) *fields[k] = 0.0 / 0.0;
    if (k >= 6 && k < 12) *fields[k - 6] = -1;
    if (k >= 12 && k < 18) *fields[k - 12] = 1.0 / 0.0;
    if (k == 24) v.predicted = 0;
    if (k == 25) v.outcome = OUTCOME_RACE;
    if (k == 26) v.score = v.time_us = 0;
    if (k == 27) v.low = 3;
    if (k == 28) record_text(r, "id", "mine");
    if (k == 29) record_text(r, "confirmed", "yes");
    Record *own = record_new();
    verdict_record(&v, job->task, own);
    Buffer encoded;
    msgpack_zone zone;
    View view;
    buffer_init(&encoded, QUEUE_MAX_BODY);
    assert_int_equal(record_encode(own, &encoded, &err), 0);
    assert_true(msgpack_zone_init(&zone, 4096));
    assert_int_equal(view_decode(encoded.data, encoded.len, "v", &zone, &view, &err), 0);
    const char *skip = change < 7          ? texts[change]
                       : change < 14       ? texts[change - 7]
                       : k >= 18 && k < 24 ? numbers[k - 18]
                                           : "";
    for (uint32_t i = 0; i < view.map->via.map.size; i++) copy_field(r, &view, i, skip);
    if (change < 7)
        record_text(r, skip, "other");
    else if (change < 14)
        record_int(r, skip, 3);
    else if (*skip)
        record_text(r, skip, "2");
    assert_int_equal(record_encode(r, out, &err), 0);
    msgpack_zone_destroy(&zone);
    buffer_release(&encoded);
    record_free(own);
    record_free(r);
}

static void test_verdicts(void **state)
{
    (void)state;
    Job job;
    Error err;
    honest(&job, 3000);
    for (int change = 0; change <= VERDICT_CHANGES; change++) {
        Buffer b;
        buffer_init(&b, QUEUE_MAX_BODY);
        change_verdict(change == VERDICT_CHANGES ? 99 : change, &job, &b);
        size_t len = b.len;
        int rc = job_check_verdict(&job, b.data, &len, &err);
        if (change == VERDICT_CHANGES && rc) fail_msg("the unchanged verdict: %s", err.text);
        if (change < VERDICT_CHANGES && !rc) fail_msg("change %d is believed", change);
        if (change < VERDICT_CHANGES) assert_int_equal(err.code, ERROR_CORRUPT);
        for (size_t n = 0; change == VERDICT_CHANGES && n + 1 < b.len; n++) {
            len = n;
            assert_int_equal(job_check_verdict(&job, b.data, &len, &err), -1);
        }
        buffer_release(&b);
    }
}

/* ---- seals ---- */

static void test_seals(void **state)
{
    (void)state;
    Job job, back;
    Error err;
    Buffer plain, sealed;
    honest(&job, 4000);
    buffer_init(&plain, QUEUE_MAX_BODY);
    buffer_init(&sealed, QUEUE_MAX_BODY);
    assert_int_equal(job_encode(&job, &plain, &err), 0);
    setenv("QUERN_KEY", "short", 1);
    assert_int_equal(seal_check_key(&err), -1);
    assert_int_equal(err.code, ERROR_USAGE);
    setenv("QUERN_KEY", "sixteen bytes and more", 1);
    assert_int_equal(seal_check_key(&err), 0);
    assert_int_equal(job_encode(&job, &sealed, &err), 0);
    assert_int_equal(sealed.len, plain.len + SEAL_BYTES);
    assert_int_equal(job_decode(sealed.data, sealed.len, &back, &err), 0);
    assert_int_equal(job_decode(plain.data, plain.len, &back, &err), -1);
    for (size_t i = 0; i < sealed.len; i++) { /* any changed byte */
        ((unsigned char *)sealed.data)[i] ^= 1;
        assert_int_equal(job_decode(sealed.data, sealed.len, &back, &err), -1);
        ((unsigned char *)sealed.data)[i] ^= 1;
    }
    size_t len = sealed.len;
    assert_int_equal(seal_open(SEAL_VERDICT, sealed.data, &len, &err), -1);
    setenv("QUERN_KEY", "another secret, as long", 1);
    assert_int_equal(job_decode(sealed.data, sealed.len, &back, &err), -1);
    unsetenv("QUERN_KEY");
    buffer_release(&plain);
    buffer_release(&sealed);
}

int main(void)
{
    if (system("redis-server --version >/dev/null 2>&1")) {
        puts("1..0 # SKIP no redis-server in PATH");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries), cmocka_unit_test(test_bodies), cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_verdicts), cmocka_unit_test(test_seals)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
