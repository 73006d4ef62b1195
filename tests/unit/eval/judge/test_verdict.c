/* A verdict's record fits the schema of its artifact and reads back equal, a damaged one is refused
 * by field, and the key depends on everything that decides the verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "artifacts/schema.h"
#include "base/memory.h"
#include "eval/judge/evaluator.h"
#include "eval/judge/verdict/verdict_schema.h"

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
                 .predicted = 1,
                 .error_factor = 1.4};
    strcpy(v.checks[0], "check n=31, input scale 1");
    strcpy(v.checks[1], "check n=64, input scale 8");
    v.timing = memory_alloc(sizeof *v.timing);
    v.timing->n = 1;
    v.timing->n_counters = v.timing->n_baseline_counters = 1;
    strcpy(v.timing->counters[0].name, "occupancy");
    strcpy(v.timing->baseline_counters[0].name, "occupancy");
    v.timing->n_lines = 2;
    strcpy(v.timing->lines[1], "line 7: 40%, DRAM");
    memset(v.source_digest, 'a', DIGEST_HEX - 1);
    memset(v.task_digest, 'b', DIGEST_HEX - 1);
    memset(v.key, 'c', DIGEST_HEX - 1);
    return v;
}

typedef struct {
    Buffer bytes;
    msgpack_zone zone;
    View view;
} Encoded;

static void encode_record(const Record *r, Encoded *out)
{
    Error err = {0};
    buffer_init(&out->bytes, 1 << 20);
    msgpack_zone_init(&out->zone, 4096);
    if (record_encode(r, &out->bytes, &err) ||
        view_decode(out->bytes.data, out->bytes.len, "record", &out->zone, &out->view, &err))
        fail_msg("%s", err.text);
}

static Record *record_of(const Verdict *v)
{
    Record *r = record_new();
    verdict_record(v, "relu", r);
    record_text(r, "id", "sample-1");
    return r;
}

static void encode(const Verdict *v, Encoded *out)
{
    Record *r = record_of(v);
    encode_record(r, out);
    record_free(r);
}

static void encoded_release(Encoded *e)
{
    msgpack_zone_destroy(&e->zone);
    buffer_release(&e->bytes);
}

/* The record is valid, and encoding what verdict_read makes of it gives the same bytes. */
static void check_record(const Verdict *v)
{
    Error err = {0};
    Encoded first, second;
    Verdict back;
    encode(v, &first);
    if (schema_check("verdicts", &first.view, &err) || verdict_read(&first.view, &back, &err))
        fail_msg("%s", err.text);
    encode(&back, &second);
    assert_int_equal(first.bytes.len, second.bytes.len);
    assert_memory_equal(first.bytes.data, second.bytes.data, first.bytes.len);
    assert_int_equal(back.timing != NULL, v->timing != NULL);
    if (v->timing) assert_int_equal(back.timing->n, v->timing->n);
    verdict_release(&back);
    encoded_release(&first);
    encoded_release(&second);
}

static void test_record(void **state)
{
    (void)state;
    Verdict v = sample();
    check_record(&v);
    v.timing->n = 5; /* as on a device with a clock: raw samples and telemetry, too */
    v.timing->mode = CLOCK_GRAPH;
    v.timing->candidate_us[4] = v.timing->baseline_us[0] = 3.25;
    v.timing->before.sm_mhz = v.timing->after.sm_mhz = 1980;
    v.timing->after.throttle = 1ull << 40;
    v.predicted = 0;
    v.light_is_flops = 1;
    strcpy(v.uuid, "GPU-1");
    check_record(&v);
    verdict_release(&v);
    v.outcome = OUTCOME_CHEAT;
    strcpy(v.cheat, "stale_result");
    strcpy(v.message, "why");
    v.n_checks = 0;
    check_record(&v);
}

/* verdict_read refuses the record of a sample verdict in which one field was replaced. */
static void refused(void (*replace)(Record *), ErrorCode code, const char *sentence)
{
    Verdict v = sample(), back;
    Error err = {0};
    Encoded good, bad;
    Record *r = record_new();
    encode(&v, &good);
    replace(r);
    record_copy(r, &good.view);
    encode_record(r, &bad);
    assert_int_equal(verdict_read(&bad.view, &back, &err), -1);
    assert_null(back.timing);
    assert_int_equal(err.code, code);
    assert_string_equal(err.text, sentence);
    encoded_release(&good);
    encoded_release(&bad);
    record_free(r);
    verdict_release(&v);
}

static void unknown_outcome(Record *r)
{
    record_text(r, "outcome", "fine");
}

static void text_score(Record *r)
{
    record_text(r, "score", "high");
}

static void long_uuid(Record *r)
{
    char text[100] = "";
    memset(text, 'u', sizeof text - 1);
    record_text(record_map(r, "detail"), "uuid", text);
}

static void text_counter(Record *r)
{
    record_text(record_map(r, "counters"), "sectors", "many");
}

static void bad_seed(Record *r)
{
    record_text(record_map(r, "detail"), "seed", "-1");
}

static void test_damaged_records(void **state)
{
    (void)state;
    refused(unknown_outcome, ERROR_CORRUPT, "record: unknown outcome 'fine'");
    refused(text_score, ERROR_CORRUPT, "record, field score: expected a float, found a text");
    refused(long_uuid, ERROR_LIMIT,
            "record, in detail, field uuid: expected at most 47 bytes, found 99");
    refused(text_counter, ERROR_CORRUPT,
            "record, in counters, field sectors: expected a float, found a text");
    refused(bad_seed, ERROR_CORRUPT, "record, in detail: unknown seed '-1'");
    Error err = {0};
    Encoded e;
    Verdict v;
    Record *r = record_new();
    encode_record(r, &e);
    assert_int_equal(verdict_read(&e.view, &v, &err), -1);
    assert_string_equal(err.text, "record, field task: expected a text, found no such field");
    encoded_release(&e);
    record_free(r);
}

/* The table's record fields are those of artifacts/schema.c, each with the same type. */
static void test_fields(void **state)
{
    (void)state;
    int n = 0, artifact_fields = 0, used;
    char name[32], type[3];
    for (const char *p = schema_fields("verdicts"); sscanf(p, "%31s %2s%n", name, type, &used) == 2;
         p += used, artifact_fields++) {
        int i = 0, optional = type[1] == '?';
        while (i < verdict_n_fields &&
               (verdict_fields[i].place != VERDICT_RECORD || strcmp(verdict_fields[i].name, name)))
            i++;
        if (i == verdict_n_fields) fail_msg("verdict_fields has no %s", name);
        if (verdict_fields[i].kind != *type || (verdict_fields[i].optional != 0) != optional)
            fail_msg("%s differs from artifacts/schema.c", name);
    }
    for (int i = 0; i < verdict_n_fields; i++) {
        n += verdict_fields[i].place == VERDICT_RECORD;
        for (int k = 0; k < i; k++)
            assert_string_not_equal(verdict_fields[i].name, verdict_fields[k].name);
    }
    assert_int_equal(n, artifact_fields);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record), cmocka_unit_test(test_damaged_records),
        cmocka_unit_test(test_fields), cmocka_unit_test(test_key), cmocka_unit_test(test_names)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
