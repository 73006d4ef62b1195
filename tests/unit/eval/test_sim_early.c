/* A run in the other order before the usual one: it counts only where it could not have gone another
 * way, and leaves no trace. */
#include "sim_support.h"

static Sim sim;

/* Adds 1 to x[0] as often as x[1] says. */
static const char loop[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 p0)\n{\n"
    ".reg .u64 %rd<3>; .reg .u32 %r<4>; .reg .pred %p<2>;\n"
    "ld.param.u64 %rd1, [p0];\nld.global.u32 %r1, [%rd1+4];\nmov.u32 %r2, 0;\n"
    "AGAIN:\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, %r1;\n@%p1 bra AGAIN;\n"
    "st.global.u32 [%rd1], %r2;\nret;\n}\n";

/* Each thread writes its index to x[0]. */
static const char race[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 p0)\n{\n"
    ".reg .u64 %rd<3>; .reg .u32 %r<4>;\n"
    "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\nst.global.u32 [%rd1], %r1;\nret;\n}\n";

static DeviceLaunch launch_of(DevicePtr x)
{
    DeviceLaunch l = {.module = sim.m, .kernel = "k", .grid = {1, 1, 1}, .block = {64, 1, 1}};
    memcpy(l.params, &x, sizeof x);
    return l;
}

static DevicePtr start(const char *ptx, int rounds)
{
    int x[2] = {0, rounds};
    sim_start(&sim, ptx);
    return sim_buffer(&sim, "x", x, sizeof x);
}

static void set_rounds(DevicePtr x, int rounds)
{
    if (ops->write(sim.d, x + 4, &rounds, sizeof rounds, &sim.err)) fail_msg("%s", sim.err.text);
}

static void run(const DeviceLaunch *l)
{
    if (ops->run(sim.d, l, 1, &sim.fault, &sim.err)) fail_msg("%s", sim.fault.message);
}

static void test_counts(void **state)
{
    (void)state;
    DevicePtr x = start(loop, 100);
    DeviceLaunch l = launch_of(x);
    assert_int_equal(ops->early(sim.d, &l, 1, &sim.fault, &sim.err), 0);
    run(&l);
    assert_int_equal(ops->early_counts(sim.d, &l, 1), 1);
    sim_stop(&sim);
}

/* After the usual run, the other order has a few times its instructions, and ten millions. */
static void test_takes_too_long(void **state)
{
    (void)state;
    DevicePtr x = start(loop, 100000);
    DeviceLaunch l = launch_of(x);
    assert_int_equal(ops->early(sim.d, &l, 1, &sim.fault, &sim.err), 0);
    set_rounds(x, 1);
    run(&l);
    assert_int_equal(ops->early_counts(sim.d, &l, 1), 0);
    set_rounds(x, 100000);
    run(&l);
    assert_int_equal(ops->early_counts(sim.d, &l, 1), 1);
    sim_stop(&sim);
}

/* All runs together have a limit: an early run that does not count takes nothing of it, and one that
 * counts takes its share. */
static void test_leaves_no_trace(void **state)
{
    (void)state;
    int counted = 0;
    DevicePtr x = start(loop, 100000);
    DeviceLaunch l = launch_of(x);
    sim_set_limit(sim.d, 200000000);
    run(&l);
    for (int i = 0; i < 40; i++)
        assert_int_equal(ops->early(sim.d, &l, 1, &sim.fault, &sim.err), 0);
    while (counted < 100 && ops->early_counts(sim.d, &l, 1)) counted++;
    assert_in_range(counted, 10, 40);
    sim_stop(&sim);
}

/* An attempt has a quarter of a timed run's limit, ends as a timeout, and takes nothing of what all runs
 * together have. */
static void test_attempt(void **state)
{
    (void)state;
    DevicePtr x = start(loop, 100000);
    DeviceLaunch l = launch_of(x);
    sim_set_limit(sim.d, 200000000);
    run(&l);
    for (int i = 0; i < 40; i++)
        assert_int_equal(ops->attempt(sim.d, &l, 1, &sim.fault, &sim.err), 0);
    run(&l);
    set_rounds(x, 1000000);
    assert_int_equal(ops->attempt(sim.d, &l, 1, &sim.fault, &sim.err), 1);
    assert_int_equal(sim.fault.outcome, OUTCOME_TIMEOUT);
    set_rounds(x, 100000);
    run(&l);
    sim_stop(&sim);
}

/* A fault is not to be known: the usual runs find it again. */
static void test_fault_is_found_again(void **state)
{
    (void)state;
    DevicePtr x = start(race, 0);
    DeviceLaunch l = launch_of(x);
    assert_int_equal(ops->early(sim.d, &l, 1, &sim.fault, &sim.err), 1);
    assert_int_equal(sim.fault.outcome, OUTCOME_RACE);
    assert_int_equal(ops->follow(sim.d, 1), 0);
    assert_int_equal(ops->run(sim.d, &l, 1, &sim.fault, &sim.err), 1);
    assert_int_equal(sim.fault.outcome, OUTCOME_RACE);
    sim_stop(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_takes_too_long),
        cmocka_unit_test(test_leaves_no_trace),
        cmocka_unit_test(test_attempt),
        cmocka_unit_test(test_fault_is_found_again),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
