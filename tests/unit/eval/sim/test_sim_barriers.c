/* Barriers of blocks, warp-level operations that never complete, and mbarriers. */
#include "tests/unit/eval/sim/sim_checks.h"

static void test_barriers(void **state)
{
    (void)state;
    /* a warp waits at a barrier that the rest of the block does not reach */
    sim_start(&sim, ENTRY("") LOC(3) "mov.u32 %r1, %tid.x;\nsetp.gt.u32 %p1, %r1, 31;\n@%p1 bra "
                                     "L;\nbar.sync 1;\nL:\n" LOC(9) "bar.sync 2;\n" TAIL);
    expect(sim_try(&sim, shape(1, 64), 0), OUTCOME_RACE, 3,
           "waits for ever at a barrier: 32 of 64 threads of the block reach it");

    /* one thread of a warp inside an if */
    sim_start(&sim, ENTRY("") LOC(3) "mov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra "
                                     "L;\nbar.sync 0;\nL:\n" LOC(9) "bar.sync 0;\n" TAIL);
    expect(sim_try(&sim, shape(1, 32), 0), OUTCOME_RACE, 3,
           "waits for ever at a barrier: 1 of 32 threads");

    /* threads that have exited count as arrived */
    sim_start(
        &sim,
        ENTRY("") "mov.u32 %r1, %tid.x;\nsetp.gt.u32 %p1, %r1, 40;\n@%p1 ret;\nbar.sync 0;\n" TAIL);
    accept(sim_try(&sim, shape(1, 96), 0));

    /* a shuffle names lanes that never reach it */
    sim_start(&sim, ENTRY("") LOC(3) "mov.u32 %r1, %tid.x;\nsetp.gt.u32 %p1, %r1, 15;\n@%p1 bra "
                                     "L;\nshfl.sync.down.b32 %r2, %r1, 1, 31, -1;\nL:\n" LOC(
                                         9) "bar.sync 0;\n" TAIL);
    expect(sim_try(&sim, shape(1, 32), 0), OUTCOME_RACE, 3,
           "waits for the lanes 0xffffffff of its warp, of which 0xffff0000 never reach");

    /* named barriers of a producer and a consumer warp */
    sim_start(&sim,
              ENTRY("") ".shared .align 4 .b8 s[4];\nmov.u32 %r1, %tid.x;\nsetp.gt.u32 %p1, %r1, "
                        "31;\n@%p1 bra C;\nst.shared.u32 [s], 5;\nbar.arrive 3, 64;\nbra E;\n"
                        "C:\nbar.sync 3, 64;\nld.shared.u32 %r2, [s];\nE:\n" TAIL);
    accept(sim_try(&sim, shape(2, 64), 0));
}

/* ---- mbarrier ---- */

/* An mbarrier for `count` arrivals at s; %p1: thread 0, %p2: warp 0, %r3 = s + 4 * tid.x. */
#define PHASES(count)                                                           \
    ENTRY(P64(0))                                                               \
    ".shared .align 8 .b8 s[1024];\n" POINTER                                   \
    "setp.eq.u32 %p1, %r1, 0;\nmov.u32 %r2, s;\nmad.lo.u32 %r3, %r1, 4, %r2;\n" \
    "@%p1 mbarrier.init.shared::cta.b64 [s], " count ";\nbar.sync 0;\nsetp.lt.u32 %p2, %r1, 32;\n"
#define WAIT "W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0;\n@!%p3 bra W;\n"

/* A completed phase orders these accesses. */
static const char *const passed[] = {
    PHASES("32") "@!%p2 bra R;\nst.shared.u32 [%r3+64], "
                 "%r1;\nmbarrier.arrive.release.cta.shared::cta.b64 %rd3, [%r2];\nret;\nR: " WAIT
                 "ld.shared.u32 %r4, [%r3+-64];\nadd.u32 %r4, %r4, 32;\nsetp.ne.u32 %p4, %r4, "
                 "%r1;\n@%p4 trap;\n" TAIL,
    /* a wait for a token; the phase takes two arrivals of each thread */
    PHASES("128") "st.shared.u32 [%r3+64], %r1;\nmbarrier.arrive.noComplete.shared.b64 _, "
                  "[%r2], 1;\nmbarrier.arrive.shared.b64 %rd3, [%r2], 1;\n"
                  "T: mbarrier.test_wait.shared.b64 %p3, [%r2], %rd3;\n@!%p3 bra T;\nxor.b32 "
                  "%r5, %r1, 63;\nmad.lo.u32 %r6, %r5, 4, %r2;\n"
                  "ld.shared.u32 %r4, [%r6+64];\nsetp.ne.u32 %p4, %r4, %r5;\n@%p4 trap;\n" TAIL,
    /* half of the threads drop out: the second phase waits for the others alone */
    PHASES("64") "@!%p2 bra R;\nmbarrier.arrive_drop.shared.b64 _, [%r2];\nret;\nR: "
                 "mbarrier.arrive.shared.b64 _, [%r2];\n" WAIT
                 "mbarrier.arrive.shared.b64 %rd3, [%r2];\nT: mbarrier.test_wait.shared.b64 "
                 "%p3, [%r2], %rd3;\n@!%p3 bra T;\n" TAIL,
    PHASES("64") "cp.async.ca.shared.global [%r3+64], [%rd1], "
                 "4;\ncp.async.mbarrier.arrive.noinc.shared.b64 [%r2];\n" WAIT
                 "ld.shared.u32 %r4, [%r3+64];\nsetp.ne.u32 %p4, %r4, 7;\n@%p4 trap;\n" TAIL,
    PHASES("64") "cp.async.ca.shared.global [%r3+64], [%rd1], "
                 "4;\ncp.async.mbarrier.arrive.shared.b64 [%r2];\nmbarrier.arrive.shared.b64 "
                 "_, [%r2];\n" WAIT
                 "xor.b32 %r5, %r1, 63;\nmad.lo.u32 %r6, %r5, 4, %r2;\nld.shared.u32 %r4, "
                 "[%r6+64];\nsetp.ne.u32 %p4, %r4, 7;\n@%p4 trap;\n" TAIL,
    /* bytes that no copy brings: told after they were expected, and before */
    PHASES("64") "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;\n"
                 "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 16;\n" WAIT TAIL,
    PHASES("64") "@%p1 mbarrier.complete_tx.shared.b64 [%r2], 1024;\nbar.sync 0;\n"
                 "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;\n" WAIT TAIL,
};

/* Wrong uses. */
static const struct {
    const char *ptx;
    Outcome outcome;
    const char *part;
} refused[] = {
    {PHASES("32") "@!%p2 bra R;\nst.shared.u32 [%r3+64], %r1;\nmbarrier.arrive.shared.b64 _, "
                  "[%r2];\nret;\nR: " LOC(
                      5) "ld.shared.u32 %r4, [%r3+-64];\nst.global.u32 [%rd1], %r4;\n" TAIL,
     OUTCOME_RACE, "shared memory"},
    {PHASES("100") LOC(5) "@%p1 mbarrier.arrive.shared.b64 _, [%r2], 101;\n" TAIL,
     OUTCOME_LAUNCH_ERROR, "arrives 101 times at an mbarrier that waits for 100 more"},
    {PHASES("64") "st.shared.u64 [%r2+8], %rd1;\n" LOC(
         5) "@%p1 mbarrier.arrive.shared.b64 _, [%r2+8];\n" TAIL,
     OUTCOME_RACE, "another value"},
    {PHASES("64") "@%p1 st.shared.u64 [%r2+8], %rd1;\n" LOC(
         5) "@%p1 mbarrier.arrive.shared.b64 _, [%r2+8];\n" TAIL,
     OUTCOME_LAUNCH_ERROR, "was not initialised"},
    {PHASES("65") LOC(5) "mbarrier.arrive.shared.b64 _, [%r2];\n" WAIT TAIL, OUTCOME_TIMEOUT,
     "limit"},
    {PHASES("64") "cp.async.ca.shared.global [%r3+64], [%rd1], "
                  "4;\ncp.async.mbarrier.arrive.noinc.shared.b64 [%r2];\n" LOC(
                      5) "ld.shared.u32 %r4, [%r3+64];\n"
                         "st.global.u32 [%rd1], %r4;\n" TAIL,
     OUTCOME_OUT_OF_BOUNDS, "no thread of the block has written"},
    {PHASES("64") LOC(5) "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;\n" WAIT TAIL,
     OUTCOME_TIMEOUT, "limit"},
    {PHASES("64") LOC(5) "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 16;\n"
                         "mbarrier.complete_tx.shared.b64 [%r2], 8;\n" WAIT TAIL,
     OUTCOME_TIMEOUT, "limit"},
    {PHASES("64") LOC(5) "@%p1 mbarrier.complete_tx.shared.b64 [%r2], 2000000;\n" TAIL,
     OUTCOME_LAUNCH_ERROR, "bytes at an mbarrier"},
    {PHASES("64") LOC(5) "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r2], 2000000;\n" TAIL,
     OUTCOME_LAUNCH_ERROR, "expects 2000000 bytes"},
    {PHASES("64")
         LOC(5) "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2+8], 16;\n" TAIL,
     OUTCOME_OUT_OF_BOUNDS, "multiple of 16"},
};

static void test_mbarriers(void **state)
{
    (void)state;
    int sevens[64];
    for (int i = 0; i < 64; i++) sevens[i] = 7;
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
        for (int reversed = 0; reversed < 2; reversed++) {
            sim_start(&sim, passed[i]);
            ops->disturb(sim.d, reversed);
            DevicePtr x = sim_buffer(&sim, "x", sevens, sizeof sevens);
            accept(sim_try(&sim, shape(1, 64), 1, A(x)));
        }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        sim_start(&sim, refused[i].ptx);
        DevicePtr x = sim_buffer(&sim, "x", sevens, sizeof sevens);
        int r = sim_try(&sim, shape(1, 64), 1, A(x));
        if (!r || sim.fault.outcome != refused[i].outcome ||
            !strstr(sim.fault.message, refused[i].part))
            fail_msg("case %zu: %s", i, r ? sim.fault.message : "passed");
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
