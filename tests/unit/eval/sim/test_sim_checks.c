/* Faults of memory accesses, limits and unknown instructions, each with kernel, line, block and
 * thread; and similar kernels that must pass. */
#include "tests/unit/eval/sim/sim_checks.h"

/* Kernels of tests/fixtures/sim/checks.ptx. */
#define BARE(part) sim_text("sim/checks.ptx", "entry", part)
#define KERNEL(part) sim_text("sim/checks.ptx", "entry_p0", part)
#define MODULE(part) sim_text("sim/checks.ptx", NULL, part)

static void test_bounds(void **state)
{
    (void)state;
    static const float zeros[1024];
    sim_start(&sim, KERNEL("beyond_end"));
    DevicePtr x = sim_buffer(&sim, "input x", zeros, 4096);
    int r = sim_try(&sim, shape(1, 1024), 1, A(x));
    expect(r, OUTCOME_OUT_OF_BOUNDS, 8,
           "kernel k, line 8, block (0,0,0), thread (512,0,0): reads 4 bytes at offset 4096 of "
           "input x, which has 4096 bytes");

    sim_start(&sim, KERNEL("misaligned"));
    x = sim_buffer(&sim, "input x", zeros, 4096);
    r = sim_try(&sim, shape(1, 32), 1, A(x));
    expect(r, OUTCOME_OUT_OF_BOUNDS, 3, "which is not a multiple of 4");

    sim_start(&sim, KERNEL("null"));
    x = sim_buffer(&sim, "input x", zeros, 4096);
    r = sim_try(&sim, shape(1, 32), 1, A(x));
    expect(r, OUTCOME_OUT_OF_BOUNDS, 3, "a null pointer");

    sim_start(&sim, KERNEL("store"));
    x = sim_buffer(&sim, "input x", zeros, 4096);
    ops->protect(sim.d, x, 1, &sim.err);
    r = sim_try(&sim, shape(1, 32), 1, A(x));
    expect(r, OUTCOME_OUT_OF_BOUNDS, 3, "writes to input x");

    sim_start(&sim, KERNEL("load"));
    x = sim_buffer(&sim, "scratch", NULL, 4096);
    r = sim_try(&sim, shape(1, 32), 1, A(x));
    expect(r, OUTCOME_OUT_OF_BOUNDS, 3,
           "reads 4 bytes at offset 0 of scratch before anything was written there");

    sim_start(&sim, KERNEL("load"));
    x = sim_buffer(&sim, "input x", zeros, 4096);
    ops->free(sim.d, x);
    r = sim_try(&sim, shape(1, 32), 1, A(x));
    expect(r, OUTCOME_OUT_OF_BOUNDS, 3, "where there is no buffer");

    /* half of it is written: the fault names the other half */
    sim_start(&sim, KERNEL("load"));
    x = sim_buffer(&sim, "buffer t", NULL, 128);
    ops->write(sim.d, x, zeros, 64, &sim.err);
    r = sim_try(&sim, shape(1, 32), 1, A(x));
    expect(r, OUTCOME_OUT_OF_BOUNDS, 3, "thread (16,0,0): reads 4 bytes at offset 64 of buffer t");

    /* over the end of a buffer from within: the fault names it and not the buffer behind it */
    sim_start(&sim, KERNEL("over_the_end"));
    x = sim_buffer(&sim, "input x", zeros, 4088);
    sim_buffer(&sim, "output y", zeros, 4096);
    r = sim_try(&sim, shape(1, 256), 1, A(x));
    expect(r, OUTCOME_OUT_OF_BOUNDS, 3,
           "thread (255,0,0): reads 16 bytes at offset 4080 of input x, which has 4088 bytes");
}

/* Copies 16 bytes per thread from p0 to p1 by way of shared memory: the first p2 bytes, then zeros.
 */
static int copy_by(uint32_t threads, DevicePtr from, DevicePtr to, uint32_t bytes)
{
    return sim_try(&sim, shape(1, threads), 3, A(from), A(to), A(bytes));
}

/* cp.async with zero fill touches only the bytes that it copies. */
static void test_copied_tails(void **state)
{
    (void)state;
    const char *ptx = MODULE("copied_tail");
    unsigned char data[512], got[512];
    for (int i = 0; i < 512; i++) data[i] = (unsigned char)(i % 251 + 1);
    for (uint32_t bytes = 470; bytes <= 512; bytes++) {
        sim_start(&sim, ptx);
        sim_count_all(sim.d);
        DevicePtr x = sim_buffer(&sim, "input x", data, bytes),
                  y = sim_buffer(&sim, "output y", NULL, 512);
        if (copy_by(32, x, y, bytes)) fail_msg("%u bytes: %s", bytes, sim.fault.message);
        sim_read(&sim, y, got, 512);
        for (uint32_t i = 0; i < 512; i++) assert_int_equal(got[i], i < bytes ? data[i] : 0);
        assert_int_equal(sim_last_counts(sim.d)->global_load_requests, 1);
        assert_int_equal(sim_last_counts(sim.d)->global_load_sectors, (bytes + 31) / 32);
        sim_stop(&sim);
    }
    sim_start(&sim, ptx);
    DevicePtr x = sim_buffer(&sim, "input x", data, 500),
              y = sim_buffer(&sim, "output y", NULL, 512);
    expect(copy_by(32, x, y, 504), OUTCOME_OUT_OF_BOUNDS, 6,
           "thread (31,0,0): reads 8 bytes at offset 496 of input x, which has 500 bytes");
    sim_start(&sim, ptx);
    x = sim_buffer(&sim, "scratch", NULL, 512), y = sim_buffer(&sim, "output y", NULL, 512);
    ops->write(sim.d, x, data, 500, &sim.err);
    expect(copy_by(32, x, y, 504), OUTCOME_OUT_OF_BOUNDS, 6,
           "reads 8 bytes at offset 496 of scratch before anything was written there");
    sim_start(&sim, ptx);
    x = sim_buffer(&sim, "input x", data, 500), y = sim_buffer(&sim, "output y", NULL, 512);
    expect(copy_by(1, x + 8, y, 8), OUTCOME_OUT_OF_BOUNDS, 6, "which is not a multiple of 16");
}

static void test_shared(void **state)
{
    (void)state;
    sim_start(&sim, BARE("store_beyond"));
    expect(sim_try(&sim, shape(1, 256), 0), OUTCOME_OUT_OF_BOUNDS, 5,
           "thread (255,0,0): writes 4 bytes at offset 1024 of the block's shared memory, which "
           "has 1024 bytes (1024 static, 0 dynamic)");

    sim_start(&sim, BARE("store_in_gap"));
    expect(sim_try(&sim, shape(1, 1), 0), OUTCOME_OUT_OF_BOUNDS, 5,
           "writes 4 bytes at offset 12 of a in shared memory, which has 12 bytes");
    sim_start(&sim, BARE("store_to_next"));
    expect(sim_try(&sim, shape(1, 1), 0), OUTCOME_OUT_OF_BOUNDS, 5,
           "writes 4 bytes at offset 16 of a in shared memory, which has 16 bytes");
    sim_start(&sim, BARE("store_behind_last"));
    expect(sim_try(&sim, shape(1, 1), 0), OUTCOME_OUT_OF_BOUNDS, 5,
           "writes 4 bytes at offset 20 of b in shared memory, which has 20 bytes");
    sim_start(&sim, BARE("store_to_ends"));
    accept(sim_try(&sim, shape(1, 1), 0));

    sim_start(&sim, BARE("unwritten"));
    expect(sim_try(&sim, shape(1, 64), 0), OUTCOME_OUT_OF_BOUNDS, 5,
           "shared memory that no thread of the block has written");

    /* the block before wrote it, this one did not */
    sim_start(&sim, BARE("unwritten_next_block"));
    expect(sim_try(&sim, shape(2, 64), 0), OUTCOME_OUT_OF_BOUNDS, 6, "block (1,0,0)");
}

static void test_shared_races(void **state)
{
    (void)state;
    /* a read of another warp's word without a barrier */
    sim_start(&sim, BARE("written_by_another"));
    expect(sim_try(&sim, shape(1, 64), 0), OUTCOME_RACE, 0,
           "writes shared memory at offset 128, which a thread of warp 0 reads with no barrier "
           "between");
    sim_start(&sim, BARE("read_of_another"));
    expect(sim_try(&sim, shape(1, 64), 0), OUTCOME_RACE, 9,
           "reads shared memory at offset 0, which a thread of warp 0 writes with no barrier");

    /* one barrier orders the read; without a second one the next write is a race */
    sim_start(&sim, BARE("read_behind_barrier"));
    accept(sim_try(&sim, shape(3, 64), 0));
    sim_start(&sim, BARE("write_behind_read"));
    expect(sim_try(&sim, shape(1, 64), 0), OUTCOME_RACE, 12, "with no barrier between");

    /* lanes of one warp are ordered */
    sim_start(&sim, BARE("one_warp"));
    accept(sim_try(&sim, shape(1, 128), 0));

    /* two warps write one word: different values are a race, the same value is not */
    sim_start(&sim, BARE("two_values"));
    expect(sim_try(&sim, shape(1, 64), 0), OUTCOME_RACE, 4,
           "a thread of warp 0 also writes, another value,");
    sim_start(&sim, BARE("one_value"));
    accept(sim_try(&sim, shape(1, 64), 0));

    /* two lanes of one store write one word */
    sim_start(&sim, BARE("two_lanes"));
    expect(sim_try(&sim, shape(1, 32), 0), OUTCOME_RACE, 4,
           "another thread of its warp writes at the same time");

    /* bytes of one word by two warps do not conflict */
    sim_start(&sim, BARE("bytes"));
    accept(sim_try(&sim, shape(1, 128), 0));
    /* the unwritten byte of a partly written word is found */
    sim_start(&sim, BARE("part_of_word"));
    expect(sim_try(&sim, shape(1, 64), 0), OUTCOME_OUT_OF_BOUNDS, 8,
           "no thread of the block has written");
}

/* A read of unwritten memory is a fault only when its value is used. */
static void test_unused_reads(void **state)
{
    (void)state;
    static const char *const fine[] = {
        "", "mov.u32 %r5, 1;\nadd.u32 %r6, %r5, 1;\n",
        "bar.sync 0;\nst.shared.u32 [%r4], 1;\nld.shared.u32 %r5, [%r4];\nadd.u32 %r6, %r5, 1;\n",
        "setp.ge.u32 %p1, %r1, 0;\n@%p1 bra L;\nadd.u32 %r6, %r5, 1;\nL:\n",
        "setp.ge.u32 %p1, %r1, 0;\nselp.u32 %r6, %r1, %r5, %p1;\n"};
    static const char *const used[] = {
        "st.shared.u32 [%r4], %r5;\n",
        "ld.shared.u32 %r6, [%r5];\n",
        "bar.sync 0;\nadd.u32 %r6, %r5, 1;\n",
        "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra L;\nadd.u32 %r6, %r5, 1;\nL:\n",
        "setp.lt.u32 %p1, %r1, 16;\nselp.u32 %r6, %r1, %r5, %p1;\n",
        "setp.lt.u32 %p1, %r1, 16;\n@%p1 mov.u32 %r5, 1;\nadd.u32 %r6, %r5, 1;\n",
        "setp.lt.u32 %p1, %r1, 16;\n@%p1 bra L;\nmov.u32 %r5, 2;\nL:\nadd.u32 %r6, %r5, 1;\n"};
    char ptx[2000];
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        snprintf(ptx, sizeof ptx, "%s%sret;\n}\n", ENTRY("") SHARED "ld.shared.u32 %r5, [%r4];\n",
                 fine[i]);
        sim_start(&sim, ptx);
        accept(sim_try(&sim, shape(1, 64), 0));
    }
    for (size_t i = 0; i < sizeof used / sizeof *used; i++) {
        snprintf(ptx, sizeof ptx, "%s%sret;\n}\n",
                 ENTRY("") SHARED LOC(5) "ld.shared.u32 %r5, [%r4];\n", used[i]);
        sim_start(&sim, ptx);
        expect(sim_try(&sim, shape(1, 64), 0), OUTCOME_OUT_OF_BOUNDS, 5,
               "no thread of the block has written");
    }
}

static void test_limits(void **state)
{
    (void)state;
    sim_start(&sim, BARE("loop"));
    sim_set_limit(sim.d, 1000000);
    expect(sim_try(&sim, shape(1, 32), 0), OUTCOME_TIMEOUT, 3,
           "is still running after the limit of instructions");
    sim_start(&sim, BARE("trap"));
    expect(sim_try(&sim, shape(1, 32), 0), OUTCOME_LAUNCH_ERROR, 3, "executes a trap");
    sim_start(&sim, MODULE("recursion"));
    expect(sim_try(&sim, shape(1, 32), 0), OUTCOME_LAUNCH_ERROR, 0, "overflows its stack");
    sim_start(&sim, BARE("empty"));
    expect(sim_try(&sim, shape(1, 2048), 0), OUTCOME_LAUNCH_ERROR, 0,
           "cannot be launched with blocks of (2048,1,1): 1 to 1024");
    sim_start(&sim, BARE("empty"));
    Shape big = shape(1, 32);
    big.shared = 300 << 10;
    expect(sim_try(&sim, big, 0), OUTCOME_LAUNCH_ERROR, 0,
           "it needs 307200 bytes of shared memory a block and 232448 are allowed");
}

/* An unknown instruction is reported when it is executed. */
static void test_unknown(void **state)
{
    (void)state;
    const char *ptx = MODULE("unknown");
    sim_start(&sim, ptx);
    accept(sim_try(&sim, (Shape){.kernel = "good"}, 0));
    sim_start(&sim, ptx);
    expect(sim_try(&sim, shape(1, 1), 0), OUTCOME_UNSUPPORTED, 6,
           "executes the instruction \"frobnicate.x.u32 %r1, %r2;\" (PTX line 12), which the "
           "simulator "
           "does not know");
    sim_start(&sim, BARE("strange_modifier"));
    expect(sim_try(&sim, shape(1, 1), 0), OUTCOME_UNSUPPORTED, 2,
           "a modifier that is not known here");
    sim_start(&sim, BARE("unknown_type"));
    expect(sim_try(&sim, shape(1, 1), 0), OUTCOME_UNSUPPORTED, 2, "mul.hi.f32");
}

/* What no thread executes may be unknown: threads go there when the first index is 0. */
static void test_unknown_not_executed(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "brkpt;\n",
        "frobnicate.x.u32 %r1, %r2;\n",
        "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r2}];\n",
        "mma.sync.aligned.m64n8k8.row.col.f32 {%f1, %f2}, {%r1, %r2}, {%r3}, {%f3, %f4};\n",
        "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r3];\n",
        "bra.strange DONE;\n",
        "mov.b128 {%rd1, %rd2}, %q1;\n",
        "ld.global.b128 %q1, [%rd1];\n",
        "@%p2 frobnicate;\nst.strange.global.u32 [%rd1], %r1;\n",
    };
    char ptx[2048];
    for (int i = 0; i < 2 * (int)(sizeof lines / sizeof *lines); i++) {
        snprintf(ptx, sizeof ptx,
                 "%s.reg .b128 %%q<2>;\nmov.u32 %%r1, %%tid.x;\nadd.u32 %%r1, %%r1, %d;\n"
                 "setp.ne.u32 %%p1, %%r1, 0;\nsetp.ne.u32 %%p2, %%r1, %%r1;\n@%%p1 bra DONE;\n" LOC(
                     7) "%sDONE:\n%s",
                 ENTRY(""), i % 2, lines[i / 2], TAIL);
        sim_start(&sim, ptx);
        if (i % 2)
            accept(sim_try(&sim, shape(2, 64), 0));
        else if (i)
            expect(sim_try(&sim, shape(2, 64), 0), OUTCOME_UNSUPPORTED, 7,
                   "which the simulator does not know");
        else
            expect(sim_try(&sim, shape(2, 64), 0), OUTCOME_LAUNCH_ERROR, 7,
                   "executes a breakpoint");
    }
}

/* Bulk copies that a block cannot make say what else would do. */
static void test_unknown_copies(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reason;
    } copies[] = {
        {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd1], [%r1], 16;\n",
         "use atomics"},
        {"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
         "[%r1], [%rd1, {%r2, %r4, %r5}], [%r3], {%h1};\n",
         "a tensor map for im2col"},
        {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], "
         "[%rd1, {%r2}], [%r3];\n",
         "coordinates that are not as many as the map has dimensions"},
        {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
         "[%r1], [%rd1], 16, [%r3], %h1;\n",
         "copy in each block"},
    };
    char ptx[2048];
    for (size_t i = 0; i < sizeof copies / sizeof copies[0]; i++) {
        snprintf(ptx, sizeof ptx, "%s%s%s", ENTRY("") LOC(7), copies[i].text, TAIL);
        sim_start(&sim, ptx);
        expect(sim_try(&sim, shape(1, 1), 0), OUTCOME_UNSUPPORTED, 7, copies[i].reason);
    }
}

static void test_local(void **state)
{
    (void)state;
    sim_start(&sim, BARE("local_beyond"));
    expect(sim_try(&sim, shape(1, 17), 0), OUTCOME_OUT_OF_BOUNDS, 4,
           "thread (16,0,0): writes 4 bytes at offset 64 of its local memory, which has 64 bytes");
    sim_start(&sim, BARE("local_unwritten"));
    expect(sim_try(&sim, shape(1, 8), 0), OUTCOME_OUT_OF_BOUNDS, 4,
           "thread (1,0,0): reads 4 bytes of a local array before writing them");
    sim_start(&sim, BARE("local_generic"));
    accept(sim_try(&sim, shape(1, 16), 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),       cmocka_unit_test(test_copied_tails),
        cmocka_unit_test(test_shared),       cmocka_unit_test(test_shared_races),
        cmocka_unit_test(test_unused_reads), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_unknown),      cmocka_unit_test(test_unknown_copies),
        cmocka_unit_test(test_local),        cmocka_unit_test(test_unknown_not_executed),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
