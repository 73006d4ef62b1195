/* Malformed entries, jobs and results on a private server: an evaluator lives through all of them and
 * judges honest jobs, and a submitter buries what is no verdict. test_queue_kinds.c changes every
 * field of jobs and verdicts. */
#include "base/random.h"
#include "tests/unit/eval/serve/hostile_queue.h"

/* ---- entries that are no jobs ---- */

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

static void encode_fields(int change, const Job *job, Buffer *out)
{
    static const char *const names[] = {"device", "harness", "source", "task_digest"};
    const char *values[] = {job->device, job->harness, job->source, job->task_digest};
    static const char *const other[] = {"sim:h200", "", "NVIDIA H100", "6", "a\nb"};
    static char long_text[400];
    memset(long_text, 'x', sizeof long_text - 1);
    int field = change / 10, how = change % 10;
    Record *r = record_new();
    Error err;
    for (int i = 0; i < 4; i++) {
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
    record_text(r, "task", job->task);
    record_int(r, "seed", 1);
    assert_int_equal(record_encode(r, out, &err), 0);
    record_free(r);
}

/* Have all dead jobs judged again. */
static void retry(long expected)
{
    Error err;
    long n = 0;
    assert_int_equal(queue_retry(queue, &n, &err), 0);
    assert_int_equal(n, expected);
}

/* Bodies with one field changed, under the key of the honest job: none is judged as that job. */
static void test_bodies(void **state)
{
    (void)state;
    Job job;
    char key[DIGEST_HEX];
    honest(&job, 1000);
    job_key(&job, key);
    for (int change = 0; change < 40; change++) {
        Buffer b;
        buffer_init(&b, QUEUE_MAX_BODY);
        encode_fields(change, &job, &b);
        put_body(key, b.data, b.len);
        buffer_release(&b);
    }
    lives(2);
    Poll p = wait_for(&job); /* dead, with a verdict that says why, which is of no honest job */
    assert_int_equal(p.state, QUEUE_DEAD);
    assert_false(p.accepted);
    assert_int_equal(ask(&job), OUTCOME_EVALUATOR_ERROR);
    retry(1); /* with the submitter's body */
    while (result_of(&job).state != QUEUE_DONE) clock_sleep(0.01);
    assert_int_equal(ask(&job), OUTCOME_OK);
}

/* ---- results that are no verdicts ---- */

static void store_result(const Job *job, const void *result, size_t len)
{
    char key[DIGEST_HEX], name[DIGEST_HEX + 40];
    job_key(job, key);
    snprintf(name, sizeof name, "{hostile." VERDICT_HARNESS "}:j:%s", key);
    const char *argv[] = {"HSET", name, "st", "done", "res", result};
    raw(6, argv, (const size_t[]){4, strlen(name), 2, 4, 3, len});
}

/* A submitter buries such a job, and gives its candidate evaluator_error. A retry judges it. */
static void test_results(void **state)
{
    (void)state;
    enum { RESULTS = 5 };
    Job job, other;
    Buffer of_other;
    Error err;
    honest(&other, 3100);
    buffer_init(&of_other, QUEUE_MAX_BODY);
    assert_int_equal(job_encode_failure(&other, "why", &of_other, &err), 0);
    const char *results[RESULTS] = {"", "x", "\x80", of_other.data, of_other.data};
    size_t lens[RESULTS] = {0, 1, 1, of_other.len / 2, of_other.len};
    long before = malformed();
    for (int i = 0; i < RESULTS; i++) {
        honest(&job, 3000 + i);
        store_result(&job, results[i], lens[i]);
        assert_int_equal(ask(&job), OUTCOME_EVALUATOR_ERROR);
        Poll p = result_of(&job);
        assert_int_equal(p.state, QUEUE_DEAD);
        assert_true(p.accepted);
    }
    assert_int_equal(malformed() - before, RESULTS);
    retry(RESULTS);
    for (int i = 0; i < RESULTS; i++) {
        honest(&job, 3000 + i);
        while (result_of(&job).state != QUEUE_DONE) clock_sleep(0.01);
        assert_int_equal(ask(&job), OUTCOME_OK);
    }
    buffer_release(&of_other);
}

/* Equal candidates are one job, and each gets the outcome. */
static void test_equal(void **state)
{
    (void)state;
    enum { ITEMS = 300 };
    static char sources[ITEMS][64];
    AskItem items[ITEMS];
    QueueStatus before, after;
    Error err;
    assert_int_equal(queue_status(queue, &before, 1, &err), 1);
    for (int i = 0; i < ITEMS; i++) {
        snprintf(sources[i], sizeof sources[i], "// selftest: measured 0 U=2\n// equal %d",
                 i % 100);
        items[i] = (AskItem){&task, sources[i], OUTCOME_TIMEOUT};
    }
    if (submitter_ask(&(AskOptions){queue, CLASS, 1}, items, ITEMS, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < ITEMS; i++) assert_int_equal(items[i].outcome, OUTCOME_OK);
    assert_int_equal(queue_status(queue, &after, 1, &err), 1);
    assert_int_equal(after.done - before.done, 100);
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
        cmocka_unit_test(test_entries), cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_results), cmocka_unit_test(test_equal),
        cmocka_unit_test(test_bytes),   cmocka_unit_test(test_seals)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
