/* Races between blocks and between warps in global memory, and the orders that prevent them. Faults
 * and values that must not depend on what ran on the device before. */
#include "tests/unit/eval/sim/sim_checks.h"

/* Kernels of tests/fixtures/sim/races.ptx. */
#define BARE(part) sim_text("sim/races.ptx", "entry", part)
#define KERNEL(part) sim_text("sim/races.ptx", "entry_p0", part)
#define MODULE(part) sim_text("sim/races.ptx", NULL, part)

static void test_global_races(void **state)
{
    (void)state;
    static uint32_t zeros[1024];
    DevicePtr x;
    /* blocks write different values to one word */
    sim_start(&sim, KERNEL("two_values"));
    x = sim_buffer(&sim, "output y", zeros, 64);
    int r = sim_try(&sim, shape(2, 1), 1, A(x));
    expect(r, OUTCOME_RACE, 4,
           "writes output y at offset 8, which block 0 also writes in the same launch");

    /* the same value by two blocks is no race */
    sim_start(&sim, KERNEL("one_value"));
    x = sim_buffer(&sim, "output y", zeros, 64);
    accept(sim_try(&sim, shape(2, 1), 1, A(x)));

    /* a block reads what another block writes */
    sim_start(&sim, KERNEL("read_of_write"));
    x = sim_buffer(&sim, "t", zeros, 64);
    r = sim_try(&sim, shape(4, 1), 1, A(x + 4));
    expect(r, OUTCOME_RACE, 6, "reads t at offset 4, which block 0 also writes");

    /* a block reads, a later one writes */
    sim_start(&sim, KERNEL("write_of_read"));
    x = sim_buffer(&sim, "t", zeros, 64);
    r = sim_try(&sim, shape(4, 1), 1, A(x));
    expect(r, OUTCOME_RACE, 6, "writes t at offset 4, which block 0 reads");

    /* halves of one word by two blocks do not conflict */
    sim_start(&sim, KERNEL("halves_of_word"));
    x = sim_buffer(&sim, "t", zeros, 64);
    accept(sim_try(&sim, shape(8, 1), 1, A(x)));

    /* two warps of one block, without and with a barrier */
    sim_start(&sim, KERNEL("two_warps"));
    x = sim_buffer(&sim, "t", zeros, 256);
    r = sim_try(&sim, shape(1, 64), 1, A(x));
    expect(r, OUTCOME_RACE, 5,
           "thread (32,0,0): writes t at offset 128, which another warp of the block reads");
    sim_start(&sim, KERNEL("two_warps_ordered"));
    x = sim_buffer(&sim, "t", zeros, 256);
    accept(sim_try(&sim, shape(1, 64), 1, A(x)));
}

static void test_ordered(void **state)
{
    (void)state;
    static uint32_t zeros[64];
    sim_start(&sim, KERNEL("last_block_fenced"));
    DevicePtr x = sim_buffer(&sim, "t", zeros, 256);
    sim_run(&sim, shape(4, 1), 1, A(x));
    uint32_t sum[2];
    sim_read(&sim, x, sum, 8);
    assert_int_equal(sum[1], 0 + 1);
    sim_stop(&sim);
    sim_start(&sim, KERNEL("last_block"));
    x = sim_buffer(&sim, "t", zeros, 256);
    int r = sim_try(&sim, shape(4, 1), 1, A(x));
    expect(r, OUTCOME_RACE, 20, "reads t at offset 16, which block 0 also writes");

    /* a lock between lanes of one warp: no deadlock */
    sim_start(&sim, KERNEL("lock"));
    x = sim_buffer(&sim, "t", zeros, 256);
    sim_run(&sim, shape(2, 64), 1, A(x));
    sim_read(&sim, x, sum, 8);
    assert_int_equal(sum[1], 128);
    sim_stop(&sim);
}

/* Runs the kernel of a test's first module, which leaves something behind. */
static void run_first(uint32_t threads)
{
    if (sim_try(&sim, shape(1, threads), 0)) fail_msg("%s", sim.fault.message);
}

/* Loads another module on the device of *s. The first one stays loaded. */
static void load_next(Sim *s, const char *ptx)
{
    DeviceCode code = {.ptx = ptx, .ptx_len = strlen(ptx)};
    if (ops->load(s->d, &code, 0, &s->m, &s->fault)) fail_msg("%s", s->fault.message);
}

/* A store to shared memory that the block has not written is a race with a read of it, whatever
 * value an earlier launch left there. */
static void test_left_in_shared_memory(void **state)
{
    (void)state;
    static const char *const left[] = {"0", "7", "9"};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        char fill[2000];
        snprintf(fill, sizeof fill, "%sst.shared.u32 [%%r4], %s;\nret;\n}\n", ENTRY("") SHARED,
                 left[i]);
        sim_start(&sim, fill);
        run_first(64);
        load_next(&sim, BARE("read_before_write"));
        expect(sim_try(&sim, shape(1, 64), 0), OUTCOME_RACE, 5,
               "thread (32,0,0): writes shared memory at offset 128, which a thread of warp 0 "
               "reads with no barrier between");
    }
}

/* A read of unwritten shared memory finds zeros until the fault is raised: here the value is an
 * offset, which would be outside if it were 4096. */
static void test_read_of_left_bytes(void **state)
{
    (void)state;
    sim_start(&sim, BARE("left_bytes"));
    run_first(32);
    load_next(&sim, BARE("offset_of_left_bytes"));
    expect(sim_try(&sim, shape(1, 32), 0), OUTCOME_OUT_OF_BOUNDS, 4,
           "thread (0,0,0): reads 4 bytes at offset 0 of shared memory that no thread of the "
           "block has written");
}

/* The local memory of a called function is unwritten at the start of each block. */
static void test_left_in_local_memory(void **state)
{
    (void)state;
    sim_start(&sim, MODULE("left_in_function"));
    run_first(32);
    load_next(&sim, MODULE("read_in_function"));
    expect(sim_try(&sim, shape(1, 32), 0), OUTCOME_OUT_OF_BOUNDS, 0,
           "reads 4 bytes of a local array before writing them");
}

/* The clock and the number of the launch count what the module itself has run. */
static void test_clock_of_a_module(void **state)
{
    (void)state;
    const char *ptx = KERNEL("clock");
    uint64_t first[2], second[2], other[2];
    sim_start(&sim, ptx);
    DevicePtr x = sim_buffer(&sim, "t", NULL, 16);
    sim_run(&sim, shape(1, 1), 1, A(x));
    sim_read(&sim, x, first, 16);
    sim_run(&sim, shape(1, 1), 1, A(x));
    sim_read(&sim, x, second, 16);
    assert_true(second[0] > first[0]);
    assert_int_equal(second[1], first[1] + 1);
    load_next(&sim, ptx);
    sim_run(&sim, shape(1, 1), 1, A(x));
    sim_read(&sim, x, other, 16);
    assert_memory_equal(other, first, 16);
    sim_stop(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_global_races),          cmocka_unit_test(test_ordered),
        cmocka_unit_test(test_left_in_shared_memory), cmocka_unit_test(test_read_of_left_bytes),
        cmocka_unit_test(test_left_in_local_memory),  cmocka_unit_test(test_clock_of_a_module),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
