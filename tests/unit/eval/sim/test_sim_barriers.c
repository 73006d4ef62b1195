/* Barriers of blocks, warp-level operations that never complete, and mbarriers. */
#include "tests/unit/eval/sim/sim_checks.h"

/* Kernels of tests/fixtures/sim/barriers.ptx. */
#define BARE(part) sim_text("sim/barriers.ptx", "entry", part)
#define KERNEL(part) sim_text("sim/barriers.ptx", "entry_p0", part)

static void test_barriers(void **state)
{
    (void)state;
    /* a warp waits at a barrier that the rest of the block does not reach */
    sim_start(&sim, BARE("missed_by_warp"));
    expect(sim_try(&sim, shape(1, 64), 0), OUTCOME_RACE, 3,
           "waits for ever at a barrier: 32 of 64 threads of the block reach it");

    /* one thread of a warp inside an if */
    sim_start(&sim, BARE("missed_by_lanes"));
    expect(sim_try(&sim, shape(1, 32), 0), OUTCOME_RACE, 3,
           "waits for ever at a barrier: 1 of 32 threads");

    /* threads that have exited count as arrived */
    sim_start(&sim, BARE("after_exits"));
    accept(sim_try(&sim, shape(1, 96), 0));

    /* a shuffle names lanes that never reach it */
    sim_start(&sim, BARE("shuffle_missed"));
    expect(sim_try(&sim, shape(1, 32), 0), OUTCOME_RACE, 3,
           "waits for the lanes 0xffffffff of its warp, of which 0xffff0000 never reach");

    /* named barriers of a producer and a consumer warp */
    sim_start(&sim, BARE("named"));
    accept(sim_try(&sim, shape(2, 64), 0));
}

/* ---- mbarrier ---- */

/* A completed phase orders these accesses. */
static const char *const passed[] = {
    "phase",
    /* a wait for a token; the phase takes two arrivals of each thread */
    "token",
    /* half of the threads drop out: the second phase waits for the others alone */
    "dropped",
    "copies",
    "copies_counted",
    /* bytes that no copy brings: told after they were expected, and before */
    "bytes_told_after",
    "bytes_told_before",
};

/* Wrong uses. */
static const struct {
    const char *kernel;
    Outcome outcome;
    const char *part;
} refused[] = {
    {"race_in_phase", OUTCOME_RACE, "shared memory"},
    {"too_many_arrivals", OUTCOME_LAUNCH_ERROR,
     "arrives 101 times at an mbarrier that waits for 100 more"},
    {"overwritten", OUTCOME_RACE, "another value"},
    {"not_initialised", OUTCOME_LAUNCH_ERROR, "was not initialised"},
    {"too_few_arrivals", OUTCOME_TIMEOUT, "1 of 65 arrivals are missing"},
    {"copy_not_awaited", OUTCOME_OUT_OF_BOUNDS, "that the cp.async of line 0 has not brought"},
    {"bytes_missing", OUTCOME_TIMEOUT, "fewer than expect_tx names"},
    {"bytes_too_few", OUTCOME_TIMEOUT, "than expect_tx names"},
    {"bytes_too_many", OUTCOME_LAUNCH_ERROR, "bytes at an mbarrier"},
    {"expects_too_many", OUTCOME_LAUNCH_ERROR, "expects 2000000 bytes"},
    {"bulk_misaligned", OUTCOME_OUT_OF_BOUNDS, "multiple of 16"},
};

static void test_mbarriers(void **state)
{
    (void)state;
    int sevens[64];
    for (int i = 0; i < 64; i++) sevens[i] = 7;
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
        for (int reversed = 0; reversed < 2; reversed++) {
            sim_start(&sim, KERNEL(passed[i]));
            ops->prediction->disturb(sim.d, reversed);
            DevicePtr x = sim_buffer(&sim, "x", sevens, sizeof sevens);
            accept(sim_try(&sim, shape(1, 64), 1, A(x)));
        }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        sim_start(&sim, KERNEL(refused[i].kernel));
        DevicePtr x = sim_buffer(&sim, "x", sevens, sizeof sevens);
        int r = sim_try(&sim, shape(1, 64), 1, A(x));
        if (!r || sim.fault.outcome != refused[i].outcome ||
            !strstr(sim.fault.message, refused[i].part))
            fail_msg("%s: %s", refused[i].kernel, r ? sim.fault.message : "passed");
        sim_stop(&sim);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_mbarriers),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
