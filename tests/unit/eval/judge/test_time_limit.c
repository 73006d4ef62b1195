/* The limit of a timed run, and predictions above it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "eval/device/time_limit.h"
#include "eval/judge/timing_bounds.h"

static DeviceTiming timing;

static void limits(void **state)
{
    (void)state;
    assert_true(time_limit_s(0, time_limit_least_s) == time_limit_most_s); /* no baseline yet */
    assert_true(time_limit_s(47, time_limit_least_s) == time_limit_least_s);
    assert_true(time_limit_s(10000, time_limit_least_s) == 2);
    assert_true(time_limit_s(1e6, time_limit_least_s) == time_limit_most_s);
    assert_true(time_limit_s(47, 2) == 2);
}

static void predictions(void **state)
{
    (void)state;
    Fault f;
    timing.n = 1;
    timing.baseline_us[0] = 10000;
    timing.candidate_us[0] = 2e6;
    assert_int_equal(timing_within_limit(&timing, 0, &f), 0);
    timing.candidate_us[0] = 2.1e6;
    assert_int_equal(timing_within_limit(&timing, 1, &f), 0);
    assert_int_equal(timing_within_limit(&timing, 0, &f), 1);
    assert_int_equal(f.outcome, OUTCOME_TIMEOUT);
    assert_non_null(strstr(f.message, "is 2.1 s, the limit 2 s: 200 times the baseline's 0.01 s"));
}

int main(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(limits), cmocka_unit_test(predictions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
