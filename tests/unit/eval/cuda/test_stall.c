/* The period of the memory's stalls is found among random long loads, and only a period is
 * found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "eval/cuda/measure/stall.h"
#include "tests/fixture_path.h"

static uint64_t done[STALL_LOADS];

/* Loads of 340 to 460 ns, in the steps of 32 ns of an H200's clock, with a stall every `period` ns.
 * A share `seen` of the stalls makes a load up to 430 ns longer; a share `strays` of the loads is
 * as much longer by chance. */
static uint32_t watched(double period, double seen, double strays, uint64_t seed)
{
    Random r;
    random_init(&r, seed, 0);
    double now = 1e5 * random_uniform(&r), next = now + 5e4;
    for (int i = 0; i < STALL_LOADS; i++) {
        double elapsed = 340 + 120 * random_uniform(&r);
        if (random_uniform(&r) < strays) elapsed += 430 * random_uniform(&r);
        if (now + elapsed > next) {
            if (random_uniform(&r) < seen) elapsed += 430 * random_uniform(&r);
            next += period;
        }
        now += elapsed;
        done[i] = 1795376696104133760 + (uint64_t)(now / 32) * 32;
    }
    return stall_period(done, STALL_LOADS);
}

static void near(double period, double seen, double strays)
{
    for (uint64_t seed = 0; seed < 3; seed++) {
        uint32_t found = watched(period, seen, strays, seed);
        if (fabs(found - period) > 1e-4 * period)
            fail_msg("%.0f ns: found %u (seed %d)", period, found, (int)seed);
    }
}

static void test_period(void **state)
{
    (void)state;
    near(100148, 1, 0);
    near(100148, 0.9, 0.01);
    near(100148, 1, 0.03); /* more strays than long loads are examined */
    near(51250, 0.9, 0.01);
    near(250000, 1, 0.001);
}

static void test_no_period(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        assert_int_equal(watched(100148, 0, 0, seed), 0);
        assert_int_equal(watched(100148, 0, 0.01, seed), 0);
        assert_int_equal(watched(100148, 0, 0.1, seed), 0);
        assert_int_equal(watched(4000000, 1, 0, seed), 0); /* six stalls are too few for a period */
    }
    for (int i = 0; i < STALL_LOADS; i++) done[i] = 5; /* a clock that stands still */
    assert_int_equal(stall_period(done, STALL_LOADS), 0);
    for (int i = 0; i < STALL_LOADS; i++)
        done[i] = (uint64_t)(STALL_LOADS - i) * 1000; /* or runs backwards */
    stall_period(done, STALL_LOADS);
    assert_int_equal(stall_period(done, 2), 0);
    assert_int_equal(stall_period(done, 0), 0);
}

/* Bursts of long loads, as caused by another process on the GPU: a burst falls into one or two bins
 * of any long period. */
static void test_bursts(void **state)
{
    (void)state;
    Random r;
    for (uint64_t seed = 0; seed < 4; seed++) {
        double now = 0;
        random_init(&r, seed, 0);
        for (int i = 0, burst = 0; i < STALL_LOADS; i++) {
            if (!burst && random_uniform(&r) < 0.001) burst = 20;
            now += 340 + 120 * random_uniform(&r) + (burst ? 300 * random_uniform(&r) : 0);
            burst -= burst > 0;
            done[i] = (uint64_t)(now / 32) * 32;
        }
        assert_int_equal(stall_period(done, STALL_LOADS), 0);
    }
}

/* Times between loads, recorded by a thread on an H200, in steps of 32 ns. */
static uint32_t of_file(const char *name)
{
    char path[4200];
    int step, n = 1;
    snprintf(path, sizeof path, "%s/%s", fixture_path("tests/fixtures/stall"), name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    done[0] = 1795376696104133760;
    for (; n < STALL_LOADS && fscanf(f, "%d", &step) == 1; n++)
        done[n] = done[n - 1] + 32 * (uint64_t)step;
    fclose(f);
    assert_true(n >= 8192);
    return stall_period(done, n);
}

static void test_h200(void **state)
{
    (void)state;
    assert_in_range(of_file("h200-dram.txt"), 100100, 100200);
    assert_in_range(
        of_file("h200-hidden.txt"), 100130,
        100170); /* another GPU, where most loads that meet a stall are not longer than others */
    assert_int_equal(of_file("h200-l2.txt"), 0); /* loads from the L2 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_period),
                                       cmocka_unit_test(test_no_period),
                                       cmocka_unit_test(test_bursts), cmocka_unit_test(test_h200)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
