/* Jobs: encoding, decoding of torn bytes, and keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "eval/serve/job.h"

static void test_job(void **state)
{
    (void)state;
    Error err = {0};
    Job job = {.task = "relu",
               .task_digest = "abc",
               .device = "sim:h100",
               .harness = VERDICT_HARNESS,
               .source = "a\0b",
               .source_len = 3,
               .seed = 7};
    Job second = job;
    snprintf(second.not_on, sizeof second.not_on, "GPU-1");
    Job back;
    Buffer b;
    buffer_init(&b, 4096);
    assert_int_equal(job_encode(&job, &b, &err), 0);
    assert_int_equal(job_decode(b.data, b.len, &back, &err), 0);
    assert_string_equal(back.task, "relu");
    assert_int_equal(back.source_len, 3);
    assert_memory_equal(back.source, "a\0b", 3);
    assert_int_equal(back.seed, 7);
    assert_string_equal(back.not_on, "");
    for (size_t n = 0; n < b.len; n++) assert_int_equal(job_decode(b.data, n, &back, &err), -1);
    buffer_clear(&b);
    assert_int_equal(job_encode(&second, &b, &err), 0);
    assert_int_equal(job_decode(b.data, b.len, &back, &err), 0);
    assert_string_equal(back.not_on, "GPU-1");
    buffer_release(&b);
    /* every field changes the key, and a byte that moves to the next field changes it, too */
    static const Job jobs[] = {
        {.source = "ab", .source_len = 2, .task_digest = "c", .device = "d", .seed = 1},
        {.source = "a", .source_len = 1, .task_digest = "bc", .device = "d", .seed = 1},
        {.source = "ab", .source_len = 2, .task_digest = "cd", .seed = 1},
        {.source = "ab", .source_len = 2, .task_digest = "c", .device = "e", .seed = 1},
        {.source = "ab", .source_len = 2, .task_digest = "c", .device = "d", .seed = 2},
        {.source = "ac", .source_len = 2, .task_digest = "c", .device = "d", .seed = 1},
        {.source = "ab",
         .source_len = 2,
         .task_digest = "c",
         .device = "d",
         .seed = 1,
         .not_on = "e"}};
    enum { JOBS = sizeof jobs / sizeof *jobs };
    char keys[JOBS][DIGEST_HEX];
    for (int i = 0; i < JOBS; i++) job_key(&jobs[i], keys[i]);
    for (int i = 0; i < JOBS; i++)
        for (int k = 0; k < i; k++) assert_string_not_equal(keys[i], keys[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_job)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
