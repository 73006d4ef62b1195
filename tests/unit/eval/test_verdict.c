/* A verdict's record fits the schema; its key names everything that decides it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "artifacts/schema.h"
#include "base/memory.h"
#include "eval/judge/evaluator.h"

static Verdict sample(void)
{
    Verdict v = {.outcome = OUTCOME_OK,
                 .score = 1.5,
                 .speedup = 1.5,
                 .low = 1.5,
                 .high = 1.5,
                 .time_us = 10,
                 .baseline_us = 15,
                 .light_us = 4,
                 .registers = 32,
                 .n_checks = 2,
                 .device = "sim:h100",
                 .compiler = "NVRTC 13.0",
                 .seed = UINT64_MAX,
                 .predicted = 1};
    strcpy(v.checks[0], "check n=31, input scale 1");
    strcpy(v.checks[1], "check n=64, input scale 8");
    v.timing = memory_alloc(sizeof *v.timing);
    v.timing->n = 1;
    v.timing->n_counters = v.timing->n_baseline_counters = 1;
    strcpy(v.timing->counters[0].name, "occupancy");
    strcpy(v.timing->baseline_counters[0].name, "occupancy");
    memset(v.source_digest, 'a', DIGEST_HEX - 1);
    memset(v.task_digest, 'b', DIGEST_HEX - 1);
    memset(v.key, 'c', DIGEST_HEX - 1);
    return v;
}

static void check_schema(const Verdict *v)
{
    Error err = {0};
    Buffer b;
    View view;
    msgpack_zone zone;
    Record *r = record_new();
    buffer_init(&b, 1 << 20);
    msgpack_zone_init(&zone, 4096);
    verdict_record(v, "relu", r);
    record_text(r, "id", "sample-1");
    if (record_encode(r, &b, &err) || view_decode(b.data, b.len, "record", &zone, &view, &err) ||
        schema_check("verdicts", &view, &err))
        fail_msg("%s", err.text);
    msgpack_zone_destroy(&zone);
    buffer_release(&b);
    record_free(r);
}

static void test_record(void **state)
{
    (void)state;
    Verdict v = sample();
    check_schema(&v);
    v.timing->n = 5; /* of a clock: raw samples and telemetry too */
    v.predicted = 0;
    v.timing->before.sm_mhz = v.timing->after.sm_mhz = 1980;
    check_schema(&v);
    verdict_release(&v);
    v.outcome = OUTCOME_CHEAT;
    strcpy(v.cheat, "stale_result");
    strcpy(v.message, "why");
    v.n_checks = 0;
    check_schema(&v);
}

static void key_of(const char *source, const char *task_digest, const char *device_class,
                   uint64_t seed, char *out)
{
    VerdictKey key = {.source = source,
                      .source_len = strlen(source),
                      .task_digest = task_digest,
                      .device_class = device_class,
                      .not_on = "",
                      .seed = seed};
    verdict_key(&key, out);
}

static void test_key(void **state)
{
    (void)state;
    char key[6][DIGEST_HEX];
    key_of("source", "task", "sim:h100", 1, key[0]);
    key_of("sourcE", "task", "sim:h100", 1, key[1]);
    key_of("source", "tasK", "sim:h100", 1, key[2]);
    key_of("source", "task", "sim:a100", 1, key[3]);
    key_of("source", "task", "sim:h100", 2, key[4]);
    key_of("sourcet", "ask", "sim:h100", 1, key[5]); /* fields do not run into one another */
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < i; k++) assert_string_not_equal(key[i], key[k]);
}

static void test_names(void **state)
{
    (void)state;
    Outcome o;
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        assert_int_equal(outcome_from_name(outcome_name((Outcome)i), &o), 0);
        assert_int_equal(o, i);
        assert_true(strlen(outcome_meaning((Outcome)i)) > 10);
    }
    assert_int_equal(outcome_from_name("fine", &o), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_record), cmocka_unit_test(test_key),
                                       cmocka_unit_test(test_names)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
