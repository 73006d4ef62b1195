/* The limiter that a GPU's counters name: shares of the range around the launches are those of the
 * kernel in it, and a unit below half its peak limits nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "eval/explain/why.h"

typedef struct {
    const char *name;
    double value;
} Given;

static Limit limit_of(const Given *given, int n)
{
    Counters c = {.n = n};
    Limit l;
    for (int i = 0; i < n; i++) {
        snprintf(c.v[i].name, sizeof c.v[i].name, "%s", given[i].name);
        c.v[i].value = given[i].value;
    }
    if (why_limit(&c, &l)) l.text = "none";
    return l;
}
#define LIMIT(...)                         \
    limit_of((const Given[]){__VA_ARGS__}, \
             (int)(sizeof((const Given[]){__VA_ARGS__}) / sizeof(Given)))

/* A kernel that fills DRAM for half of the range is limited by DRAM. */
static void test_range(void **state)
{
    (void)state;
    Limit l = LIMIT({"dram_busy_pct", 43}, {"issue_slots_busy_pct", 60}, {"kernel_cycles", 50},
                    {"range_cycles", 100});
    assert_string_equal(l.text, "DRAM");
    assert_true(l.of_peak && l.share > 0.859 && l.share < 0.861);
    l = LIMIT({"dram_busy_pct", 43}, {"issue_slots_busy_pct", 60});
    assert_string_equal(l.text, "issue slots");
    l = LIMIT({"dram_busy_pct", 90}, {"kernel_cycles", 50}, {"range_cycles", 100});
    assert_true(l.share == 1); /* two passes of different length */
}

static void test_waiting(void **state)
{
    (void)state;
    Limit l = LIMIT({"dram_busy_pct", 20}, {"l1_busy_pct", 30}, {"kernel_cycles", 100},
                    {"range_cycles", 100});
    assert_string_equal(l.text, "latency that nothing hides");
    assert_true(!l.of_peak && l.share > 0.69 && l.share < 0.71);
    assert_string_equal(LIMIT({"occupancy_pct", 80}).text, "none");
}

/* Shared memory that mostly adds for atomics, and one slice of L2 that does. */
static void test_atomics(void **state)
{
    (void)state;
    assert_string_equal(
        LIMIT({"l1_busy_pct", 90}, {"shared_wavefronts_sum", 100}, {"shared_atomic_wavefronts", 80})
            .text,
        "atomics");
    assert_string_equal(
        LIMIT({"l1_busy_pct", 90}, {"shared_wavefronts_sum", 100}, {"shared_atomic_wavefronts", 20})
            .text,
        "L1 and shared memory");
    assert_string_equal(
        LIMIT({"l2_busy_pct", 10}, {"l2_atomic_busy_pct", 1}, {"l2_atomic_busiest_pct", 90}).text,
        "atomics");
}

/* A GPU whose multiprocessors stand idle for most of the kernel. */
static void test_advice(void **state)
{
    static DeviceTiming timing;
    Verdict v = {.time_us = 10, .timing = &timing};
    Buffer text;
    (void)state;
    timing.n_counters = 3;
    timing.counters[0] = (DeviceCounter){"dram_busy_pct", 10};
    timing.counters[1] = (DeviceCounter){"kernel_cycles", 100};
    timing.counters[2] = (DeviceCounter){"active_cycles", 30};
    buffer_init(&text, 1 << 16);
    why_advice(&v, &text);
    assert_non_null(strstr(text.data, "The grid does not fill the GPU"));
    text.len = 0;
    timing.counters[2].value = 95;
    why_advice(&v, &text);
    assert_non_null(strstr(text.data, "Threads wait"));
    buffer_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_range), cmocka_unit_test(test_waiting),
                                       cmocka_unit_test(test_atomics),
                                       cmocka_unit_test(test_advice)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
