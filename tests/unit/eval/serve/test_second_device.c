/* Which scores are records, and how the verdicts of two devices are merged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "eval/serve/second_device.h"

static const Job job = {.task = "relu",
                        .task_digest = "d",
                        .device = "sm_90",
                        .source = "k",
                        .source_len = 1,
                        .seed = 1};

static Verdict verdict(const char *outcome, double score, const char *uuid)
{
    Verdict v = {.score = score, .speedup = score, .low = score, .high = score};
    assert_int_equal(outcome_from_name(outcome, &v.outcome), 0);
    snprintf(v.key, sizeof v.key, "%s", uuid);
    snprintf(v.uuid, sizeof v.uuid, "%s", uuid);
    snprintf(v.device, sizeof v.device, "NVIDIA H200");
    if (v.outcome != OUTCOME_OK) snprintf(v.message, sizeof v.message, "why");
    return v;
}

/* A record as it comes from the queue. The zone and the bytes stay valid until drop. */
typedef struct {
    Buffer bytes;
    msgpack_zone zone;
    View view;
} Made;

static void make(Made *m, Record *r)
{
    Error err;
    buffer_init(&m->bytes, 8192);
    msgpack_zone_init(&m->zone, 4096);
    assert_int_equal(record_encode(r, &m->bytes, &err), 0);
    assert_int_equal(view_decode(m->bytes.data, m->bytes.len, "made", &m->zone, &m->view, &err), 0);
    record_free(r);
}

static void make_verdict(Made *m, const char *outcome, double score, const char *uuid)
{
    Verdict v = verdict(outcome, score, uuid);
    Record *r = record_new();
    verdict_record(&v, "relu", r);
    make(m, r);
}

static void drop(Made *m)
{
    msgpack_zone_destroy(&m->zone);
    buffer_release(&m->bytes);
}

static int is_record(const char *outcome, double score, int predicted, double best)
{
    Verdict v = verdict(outcome, score, "GPU-1");
    Job out;
    v.predicted = predicted;
    int yes = second_device_job(&job, &v, best, &out);
    if (yes) {
        assert_string_equal(out.not_on, "GPU-1");
        assert_string_equal(
            out.device, "NVIDIA H200"); /* the class of the GPU, not the requested architecture */
        assert_true(out.seed != job.seed);
    }
    return yes;
}

static void test_record(void **state)
{
    (void)state;
    assert_true(is_record("ok", 3.001, 0, 0));
    assert_false(is_record("ok", 3, 0, 0));
    assert_false(is_record("ok", 30, 1, 0));
    assert_false(is_record("wrong_result", 0, 0, 0));
    assert_true(is_record("ok", 2.5, 0, 1.2));
    assert_false(is_record("ok", 2.4, 0, 1.2));
    assert_false(is_record("ok", 1.9, 0, 0.4)); /* the best known is at least 1, the baseline */
    assert_true(is_record("ok", 3.1, 0, 9));
}

static void merge(const char *outcome, double a, double b, const char *confirmed, double score,
                  const char *final, const char *message)
{
    Made first, second, merged;
    Record *r = record_new();
    Error err;
    double got;
    char *text[3];
    make_verdict(&first, "ok", a, "GPU-1");
    make_verdict(&second, outcome, b, "GPU-2");
    assert_int_equal(second_device_merge(&first.view, &second.view, r, &err), 0);
    make(&merged, r);
    static const char *const keys[] = {"confirmed", "outcome", "message"};
    const char *want[] = {confirmed, final, message};
    for (int i = 0; i < 3; i++) {
        assert_non_null(text[i] = view_strdup(&merged.view, keys[i], &err));
        assert_string_equal(text[i], want[i]);
        free(text[i]);
    }
    assert_int_equal(view_float(&merged.view, "score", &got, &err), 0);
    assert_true(got == score);
    assert_non_null(text[0] = view_strdup(&merged.view, "key", &err));
    assert_string_equal(text[0], "GPU-1"); /* of the first job */
    free(text[0]);
    drop(&first);
    drop(&second);
    drop(&merged);
}

static void test_merge(void **state)
{
    (void)state;
    merge("ok", 4, 3.6, "yes", 3.6, "ok", "");
    merge("ok", 3.6, 4, "yes", 3.6, "ok", "");
    merge("ok", 4, 3.5, "no", 3.5, "ok",
          "two devices of the class disagree: 4.000 on GPU-1, 3.500 on GPU-2");
    merge("wrong_result", 4, 0, "no", 0, "wrong_result",
          "on a second device, with other inputs: why");
    merge("evaluator_error", 4, 0, "alone", 4, "ok", "unconfirmed: why");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_record), cmocka_unit_test(test_merge)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
