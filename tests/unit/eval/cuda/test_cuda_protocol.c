/* Launch records are decoded as they were encoded, and damaged ones are refused. An answer of a
 * runner is refused when it does not belong to the call or exceeds a bound. The driver's error
 * numbers become sentences. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "eval/cuda/launch_fault.h"
#include "gpu/driver.h"

static void test_records(void **state)
{
    (void)state;
    static _Alignas(8) unsigned char records[20000];
    static DeviceLaunch l;
    LaunchRecord out;
    size_t used = 0, at = 0;
    int n = 0;
    for (int i = 0; i < 4096; i++) l.params[i] = (unsigned char)(i * 7);
    l.kernel = "cublas.sgemm";
    for (int i = 0;; i++, n++) {
        l.library_args = i % 3 == 2 ? 5 : 0;
        l.grid[0] = (uint32_t)i + 1;
        l.block[2] = 3;
        l.shared_bytes = 77;
        l.cooperative = i % 2;
        if (launch_encode(&l, (uint32_t)i, (uint32_t)(i * 13 % 100), records, sizeof records,
                          &used))
            break;
    }
    assert_in_range(n, 90, 200);
    for (int i = 0; i < n; i++) {
        assert_int_equal(launch_decode(records, used, &at, &out), 0);
        assert_int_equal(out.param_bytes, i % 3 == 2 ? 40 : i * 13 % 100);
        assert_int_equal(out.library_args, i % 3 == 2 ? 5 : 0);
        assert_string_equal(out.name, i % 3 == 2 ? "cublas.sgemm" : "");
        assert_true(out.kernel == (uint32_t)i && out.grid[0] == (uint32_t)i + 1 &&
                    out.block[2] == 3 && out.shared == 77 && out.cooperative == (uint32_t)i % 2);
        assert_memory_equal(out.params, l.params, out.param_bytes);
        assert_int_equal((uintptr_t)out.params % 8, 0);
    }
    assert_int_equal(at, used);
    assert_int_equal(launch_decode(records, used, &at, &out), -1);
    l.library_args = 0;
    used = 0;
    assert_int_equal(
        launch_encode(&l, 0, KERNEL_MAX_PARAM_BYTES + 1, records, sizeof records, &used), -1);
}

/* No record reaches beyond its bytes, whatever they are; the address sanitizer checks the reads. */
static void test_torn_records(void **state)
{
    (void)state;
    Random r;
    random_init(&r, 3, 4);
    for (int i = 0; i < 20000; i++) {
        size_t len = random_below(&r, 300), at = 0;
        unsigned char *bytes = malloc(len + 1);
        LaunchRecord out;
        for (size_t k = 0; k < len; k++)
            bytes[k] = random_below(&r, 3) ? 0 : (unsigned char)random_u64(&r);
        while (!launch_decode(bytes, len, &at, &out)) {
            assert_true(at <= len && out.params + out.param_bytes <= bytes + len);
            volatile unsigned char last = out.param_bytes ? out.params[out.param_bytes - 1] : 0;
            (void)last;
        }
        free(bytes);
    }
}

static void test_answers(void **state)
{
    (void)state;
    Error err;
    static CudaAnswer a;
    CudaCall kernel = {.kind = CALL_KERNEL, .sequence = 5},
             run = {.kind = CALL_RUN, .sequence = 6, .launches = 3},
             clock = {.kind = CALL_CLOCK, .sequence = 7, .launches = 1},
             count = {.kind = CALL_COUNTERS, .sequence = 8, .launches = 1};
    a = (CudaAnswer){.kind = CALL_KERNEL, .sequence = 5};
    assert_int_equal(protocol_check(&kernel, &a, sizeof a, &err), 0);
    assert_int_equal(protocol_check(&kernel, &a, sizeof a - 1, &err), -1);
    assert_int_equal(protocol_check(&run, &a, sizeof a, &err), -1);
    a.u.kernel.n_params = KERNEL_MAX_PARAMS + 1;
    assert_int_equal(protocol_check(&kernel, &a, sizeof a, &err), -1);
    a.u.kernel.n_params = 1;
    a.u.kernel.param_bytes = 8;
    a.u.kernel.params[0].offset = 4;
    a.u.kernel.params[0].size = 8;
    assert_int_equal(protocol_check(&kernel, &a, sizeof a, &err), -1);
    a.u.kernel.params[0].offset = 0xfffffffc;
    assert_int_equal(protocol_check(&kernel, &a, sizeof a, &err), -1);
    a = (CudaAnswer){.kind = CALL_RUN,
                     .sequence = 6,
                     .end = {.step = END_RUN, .result = 700, .first = 2, .last = 2}};
    memset(a.end.text, 'x', sizeof a.end.text);
    assert_int_equal(protocol_check(&run, &a, sizeof a, &err), 0);
    assert_int_equal(strlen(a.end.text), sizeof a.end.text - 1);
    a.end.last = 3;
    assert_int_equal(protocol_check(&run, &a, sizeof a, &err), -1);
    a.end.first = -1, a.end.last = 2;
    assert_int_equal(protocol_check(&run, &a, sizeof a, &err), -1);
    a.end.step = END_LIBRARY + 1;
    assert_int_equal(protocol_check(&run, &a, sizeof a, &err), -1);
    a = (CudaAnswer){.kind = CALL_CLOCK, .sequence = 7, .u.clock = {1, 2, 3}};
    assert_int_equal(protocol_check(&clock, &a, sizeof a, &err), 0);
    a.u.clock.us = NAN;
    assert_int_equal(protocol_check(&clock, &a, sizeof a, &err), -1);
    a = (CudaAnswer){.kind = CALL_COUNTERS, .sequence = 8};
    a.u.counters.n = DEVICE_MAX_COUNTERS + 1;
    assert_int_equal(protocol_check(&count, &a, sizeof a, &err), -1);
}

static void test_calls(void **state)
{
    (void)state;
    Error err;
    static CudaCall c;
    c = (CudaCall){.kind = CALL_RUN, .bytes = 100, .launches = 2};
    assert_int_equal(protocol_check_call(&c, sizeof c, &err), 0);
    assert_int_equal(protocol_check_call(&c, sizeof c - 4, &err), -1);
    c.bytes = (uint64_t)PROTOCOL_MAILBOX + 1;
    assert_int_equal(protocol_check_call(&c, sizeof c, &err), -1);
    c = (CudaCall){.kind = CALL_CLOCK, .bytes = 100, .launches = 2, .mode = CLOCK_GRAPH};
    assert_int_equal(protocol_check_call(&c, sizeof c, &err), 0);
    c.mode++;
    assert_int_equal(protocol_check_call(&c, sizeof c, &err), -1);
    c = (CudaCall){.kind = CALL_CLOCK,
                   .launches = 1,
                   .period_ns = PROTOCOL_MAX_WAIT_NS,
                   .phase_ns = PROTOCOL_MAX_WAIT_NS - 1};
    assert_int_equal(protocol_check_call(&c, sizeof c, &err), 0);
    c.phase_ns++;
    assert_int_equal(protocol_check_call(&c, sizeof c, &err), -1);
    c = (CudaCall){.kind = CALL_CLOCK, .launches = 1, .period_ns = PROTOCOL_MAX_WAIT_NS + 1};
    assert_int_equal(protocol_check_call(&c, sizeof c, &err), -1);
    c = (CudaCall){.kind = CALL_KINDS};
    assert_int_equal(protocol_check_call(&c, sizeof c, &err), -1);
    c = (CudaCall){.kind = CALL_KERNEL};
    memset(c.name, 'k', sizeof c.name);
    assert_int_equal(protocol_check_call(&c, sizeof c, &err), -1);
}

static void explained(LaunchEnd end, int n, Outcome outcome, const char *start, const char *word)
{
    static DeviceLaunch l[3];
    Fault f;
    for (int i = 0; i < 3; i++)
        l[i] = (DeviceLaunch){
            .kernel = i == 1 ? "_Z7softmaxPfi" : "scale", .grid = {7, 1, 1}, .block = {256, 1, 1}};
    assert_int_equal(launch_fault_explain(&end, l, n, &f), 1);
    assert_int_equal(f.outcome, outcome);
    assert_int_equal(f.launch, end.last);
    if (strncmp(f.message, start, strlen(start)) || !strstr(f.message, word))
        fail_msg("said: %s", f.message);
}

static void test_faults(void **state)
{
    (void)state;
    DeviceLaunch l = {.kernel = "k"};
    Fault f;
    explained((LaunchEnd){END_RUN, CU_ILLEGAL_ADDRESS, 1, 1, 1, ""}, 3, OUTCOME_OUT_OF_BOUNDS,
              "kernel softmax (launch 2 of 3) accessed", "illegal address");
    explained((LaunchEnd){END_RUN, CU_MISALIGNED, 0, 0, 1, ""}, 1, OUTCOME_OUT_OF_BOUNDS,
              "kernel scale accessed", "multiple");
    explained((LaunchEnd){END_RUN, CU_LAUNCH_FAILED, 0, 2, 1, ""}, 3, OUTCOME_LAUNCH_ERROR,
              "kernel scale (launch 1 to 3 of 3) stopped", "trap");
    explained((LaunchEnd){END_RUN, CU_STACK_ERROR, 0, 1, 1, ""}, 3, OUTCOME_LAUNCH_ERROR,
              "a kernel of launches 1 to 2 of 3", "stack");
    explained((LaunchEnd){END_LAUNCH, CU_LAUNCH_RESOURCES, 0, 0, 0, ""}, 1, OUTCOME_LAUNCH_ERROR,
              "kernel scale cannot be launched", "block 256x1x1");
    explained((LaunchEnd){END_LAUNCH, CU_MISALIGNED, 0, 0, 1, ""}, 1, OUTCOME_OUT_OF_BOUNDS,
              "kernel scale accessed", "misaligned");
    explained((LaunchEnd){END_RUN, CU_LAUNCH_TIMEOUT, 0, 0, 1, ""}, 1, OUTCOME_TIMEOUT,
              "kernel scale did not end", "time");
    explained((LaunchEnd){END_LIBRARY, CU_OK, 1, 1, 0, "cublas.gemm: not supported (15)"}, 3,
              OUTCOME_LAUNCH_ERROR, "the library refuses this call: cublas.gemm: ", "(15)");
    /* A memory error, a failure of the harness and invalid indices are not blamed on a
     * candidate. */
    assert_int_equal(launch_fault_explain(&(LaunchEnd){END_RUN, 214, 0, 0, 1, ""}, &l, 1, &f), 0);
    assert_int_equal(
        launch_fault_explain(&(LaunchEnd){END_HARNESS, CU_ILLEGAL_ADDRESS, 0, 0, 1, ""}, &l, 1, &f),
        0);
    assert_int_equal(
        launch_fault_explain(&(LaunchEnd){END_RUN, CU_ILLEGAL_ADDRESS, 0, 1, 1, ""}, &l, 1, &f), 0);
    launch_fault_timeout(&l, 1, 5, &f);
    assert_int_equal(f.outcome, OUTCOME_TIMEOUT);
    assert_non_null(strstr(f.message, "kernel k did not end within 5 s"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_records),
                                       cmocka_unit_test(test_torn_records),
                                       cmocka_unit_test(test_answers), cmocka_unit_test(test_calls),
                                       cmocka_unit_test(test_faults)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
