/* The counters of small kernels against counts by hand. */
#include "tests/unit/eval/sim/sim_support.h"

#include "base/memory.h"
#include "eval/sim/memory/path.h"

/* Kernels of tests/fixtures/sim/counts.ptx. */
#define PART(part) sim_text("sim/counts.ptx", "with_p0", part)
#define MODULE(part) sim_text("sim/counts.ptx", NULL, part)

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"
#define KERNEL(body)                                                                              \
    HEAD ".visible .entry k(.param .u64 p0)\n{\n.reg .pred %p<8>;\n.reg .b32 %r<32>;\n.reg .f32 " \
         "%f<16>;\n.reg .b64 %rd<32>;\n"                                                          \
         ".shared .align 16 .b8 s[8192];\n" body "ret;\n}\n"

static Sim sim;

/* Runs a kernel with `blocks` blocks of `threads` threads and 64 KiB of zeros at p0. */
static const SimCounts *count(const char *ptx, uint32_t blocks, uint32_t threads)
{
    static const unsigned char zeros[65536];
    sim_start(&sim, ptx);
    sim_count_all(sim.d);
    DevicePtr x = sim_buffer(&sim, "x", zeros, sizeof zeros);
    sim_run(&sim, ((Shape){.kernel = "k", .grid = {blocks}, .block = {threads}}), 1, A(x));
    return sim_last_counts(sim.d);
}

static uint64_t integers_of(const SimCounts *n)
{
    return n->by_class[INST_INT] + n->by_class[INST_INT_ADD] + n->by_class[INST_INT_MUL];
}

static void test_instructions(void **state)
{
    (void)state;
    /* 5 instructions and ret, 3 blocks of 70 threads: 3 warps each, the last with 6 lanes */
    const SimCounts *n = count(PART("arithmetic"), 3, 70);
    assert_int_equal(n->blocks, 3);
    assert_int_equal(n->warps, 9);
    assert_int_equal(n->warp_insts, 9 * 6);
    assert_int_equal(n->thread_insts, 210 * 6);
    assert_int_equal(integers_of(n), 27);
    assert_int_equal(n->by_class[INST_FP32], 9);
    assert_int_equal(n->by_class[INST_OTHER], 9);
    assert_int_equal(n->threads_by_class[INST_FP32], 210);
    assert_int_equal(n->fp32_flops, 420);
    assert_int_equal(n->warp_insts_max, 6);
    /* mul 4 after add 4, then cvt 4 and fma 4 */
    assert_int_equal(n->chain_cycles_max, 4 + 4 + 4 + 4);
    sim_stop(&sim);
}

static void test_divergence(void **state)
{
    (void)state;
    /* lane i runs the loop i + 1 times: 32 rounds, and one lane leaves after each */
    const SimCounts *n = count(PART("loop_of_lanes"), 1, 32);
    assert_int_equal(n->branches, 32);
    assert_int_equal(n->divergent_branches, 31);
    assert_int_equal(n->warp_insts, 2 + 32 * 3 + 1);
    assert_int_equal(n->thread_insts, 64 + 3 * (32 * 33 / 2) + 32);
    sim_stop(&sim);
    /* both paths of an if, then the join: 2 instructions for odd lanes, 1 for even ones */
    n = count(PART("two_paths"), 1, 64);
    assert_int_equal(n->branches, 2 * 2);
    assert_int_equal(n->divergent_branches, 2);
    assert_int_equal(n->warp_insts, 2 * (4 + 2 + 1 + 2));
    assert_int_equal(n->thread_insts, 64 * 6 + 32 * 2 + 32);
    sim_stop(&sim);
    /* the whole warp agrees: no divergence */
    n = count(PART("warps_agree"), 1, 64);
    assert_int_equal(n->divergent_branches, 0);
    sim_stop(&sim);
}

#define AT(stride, shift)                                                              \
    "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, " #stride \
    ";\nadd.s64 %rd1, %rd1, %rd2;\n"                                                   \
    "add.s64 %rd1, %rd1, " #shift ";\n"

static void loads(const char *ptx, uint64_t sectors)
{
    const SimCounts *n = count(ptx, 1, 32);
    assert_int_equal(n->global_load_requests, 1);
    assert_int_equal(n->global_load_sectors, sectors);
    assert_int_equal(n->dram_read_sectors, sectors);
    assert_int_equal(n->l1_hit_sectors, 0);
    assert_int_equal(n->by_class[INST_GLOBAL_LOAD], 1);
    sim_stop(&sim);
}

static void test_coalescing(void **state)
{
    (void)state;
    loads(KERNEL(AT(4, 0) "ld.global.f32 %f1, [%rd1];\n"), 4); /* 128 consecutive bytes */
    loads(KERNEL(AT(4, 4) "ld.global.f32 %f1, [%rd1];\n"), 5); /* shifted by one word */
    loads(KERNEL(AT(8, 0) "ld.global.f32 %f1, [%rd1];\n"), 8); /* every second word */
    loads(KERNEL(AT(32, 0) "ld.global.f32 %f1, [%rd1];\n"), 32);
    loads(KERNEL(AT(1024, 0) "ld.global.f32 %f1, [%rd1];\n"), 32);
    loads(KERNEL(AT(0, 0) "ld.global.f32 %f1, [%rd1];\n"), 1); /* all lanes one word */
    loads(KERNEL(AT(16, 0) "ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];\n"), 16);
    loads(KERNEL(AT(2, 0) "ld.global.u16 %r2, [%rd1];\n"), 2);
    loads(KERNEL(AT(1, 0) "ld.global.u8 %r2, [%rd1];\n"), 1);
    /* a second load by the same block hits L1, one by the next block hits L2 */
    const SimCounts *n = count(PART("two_loads"), 2, 32);
    assert_int_equal(n->global_load_sectors, 16);
    assert_int_equal(n->dram_read_sectors, 4);
    assert_int_equal(n->l1_hit_sectors, 8);
    assert_int_equal(n->l2_load_sectors, 4);
    assert_int_equal(n->global_load_bytes, 4 * 128);
    sim_stop(&sim);
    n = count(KERNEL(AT(8, 0) "st.global.u32 [%rd1], 1;\n"), 1, 64);
    assert_int_equal(n->global_store_requests, 2);
    assert_int_equal(n->global_store_sectors, 16);
    assert_int_equal(n->dram_write_sectors, 16);
    assert_int_equal(n->global_store_bytes, 256);
    sim_stop(&sim);
}

static void lone(const char *ptx, uint64_t sectors)
{
    assert_int_equal(count(ptx, 1, 32)->lone_sectors, sectors);
    sim_stop(&sim);
}

/* Sectors that a request asks of L2 without the other half of their 64 bytes. */
/* A store right behind one to the same sectors is merged with it; a read past L1 of what the block has read
 * there waits for that. */
static void test_repeated_accesses(void **state)
{
    (void)state;
    const SimCounts *n =
        count(KERNEL("ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"
                     "add.s64 %rd1, %rd1, %rd2;\nst.global.u32 [%rd1], %r1;\n"
                     "st.global.u32 [%rd1], %r1;\nst.global.u32 [%rd1+128], %r1;\n"
                     "ld.volatile.global.u32 %r2, [%rd1];\nst.global.u32 [%rd1+128], %r2;\n"
                     "ld.global.cg.u32 %r3, [%rd1];\nld.volatile.global.u32 %r4, [%rd1];\n"
                     "st.global.u32 [%rd1+128], %r4;\n"),
              1, 32);
    assert_int_equal(n->global_store_requests, 5);
    assert_int_equal(n->global_store_lines, 4);
    assert_int_equal(n->global_store_sectors, 16);
    assert_int_equal(n->again_sectors, 4);
    assert_int_equal(n->strong_sectors, 4);
    sim_stop(&sim);
}

static void test_lone_sectors(void **state)
{
    (void)state;
    lone(KERNEL(AT(4, 0) "ld.global.f32 %f1, [%rd1];\n"), 0);
    lone(KERNEL(AT(4, 4) "ld.global.f32 %f1, [%rd1];\n"), 1);
    lone(KERNEL(AT(32, 0) "ld.global.f32 %f1, [%rd1];\n"), 0);
    lone(KERNEL(AT(64, 0) "ld.global.f32 %f1, [%rd1];\n"), 32);
    lone(KERNEL(AT(64, 0) "ld.global.f32 %f1, [%rd1];\nld.global.f32 %f2, [%rd1];\n"), 32);
    lone(KERNEL(AT(64, 0) "st.global.u32 [%rd1], 1;\n"), 0);
}

/* ideal: of the store and of the load, without bank conflicts */
static void wavefronts(const char *ptx, uint64_t expected, uint64_t ideal)
{
    const SimCounts *n = count(ptx, 1, 32);
    assert_int_equal(n->shared_ideal_wavefronts, 2 * ideal);
    assert_int_equal(n->shared_store_requests, 1);
    assert_int_equal(n->shared_store_wavefronts, expected);
    assert_int_equal(n->shared_load_requests, 1);
    assert_int_equal(n->shared_load_wavefronts, expected);
    sim_stop(&sim);
}

#define BANKS(stride)                                                                              \
    KERNEL("mov.u32 %r1, %tid.x;\nmul.lo.u32 %r2, %r1, " #stride                                   \
           ";\nmov.u32 %r3, s;\nadd.u32 %r3, %r3, %r2;\nst.shared.u32 [%r3], %r1;\nld.shared.u32 " \
           "%r4, [%r3];\n")

static void test_banks(void **state)
{
    (void)state;
    wavefronts(BANKS(4), 1, 1);    /* one word per bank */
    wavefronts(BANKS(8), 2, 1);    /* stride 2: two words per bank */
    wavefronts(BANKS(128), 32, 1); /* stride 32: all in one bank */
    wavefronts(BANKS(132), 1, 1);  /* stride 33: no bank twice */
    wavefronts(BANKS(12), 1, 1);
    wavefronts(BANKS(64), 16, 1);
    wavefronts(PART("vectors"), 4, 4); /* 512 bytes, 128 at a time */
    wavefronts(PART("one_word"), 1, 1);
    wavefronts(PART("bytes"), 1, 1);
}

/* Stores and loads `v` words a lane at `address`, a multiple of 4 v that depends on the lane r1. */
#define VECTORS(v, data, to, address)                                                   \
    KERNEL("mov.u32 %r1, %tid.x;\n" address "mov.u32 %r3, s;\nadd.u32 %r3, %r3, %r2;\n" \
           "st.shared." v ".u32 [%r3], " data ";\nld.shared." v ".u32 " to ", [%r3];\n")
#define FOURS(address) VECTORS("v4", "{7, 7, 7, 7}", "{%r4, %r5, %r6, %r7}", address)
#define TWOS(address) VECTORS("v2", "{7, 7}", "{%r4, %r5}", address)

/* A cycle returns one register of 32 lanes: 16 bytes a lane go a quarter of the warp at a time, and
 * a half where neighbours share addresses. Banks conflict within such a group. */
static void test_vector_banks(void **state)
{
    (void)state;
    wavefronts(FOURS("and.b32 %r2, %r1, 7;\nshl.b32 %r2, %r2, 4;\n"), 4, 4); /* 128 bytes in all */
    wavefronts(FOURS("and.b32 %r2, %r1, 7;\nshl.b32 %r2, %r2, 5;\n"), 8, 4); /* 32 bytes apart */
    wavefronts(FOURS("shr.u32 %r2, %r1, 1;\nshl.b32 %r2, %r2, 4;\n"), 2, 2); /* in pairs */
    wavefronts(FOURS("and.b32 %r2, %r1, 5;\nshl.b32 %r2, %r2, 4;\n"), 2, 2); /* lanes i and i ^ 2 */
    wavefronts(FOURS("mov.u32 %r2, 0;\n"), 2, 2);                            /* one address */
    wavefronts(TWOS("shl.b32 %r2, %r1, 3;\n"), 2, 2);
    wavefronts(TWOS("and.b32 %r2, %r1, 15;\nshl.b32 %r2, %r2, 3;\n"), 2, 2);
    wavefronts(TWOS("shr.u32 %r2, %r1, 1;\nshl.b32 %r2, %r2, 3;\n"), 1, 1);
    wavefronts(TWOS("shl.b32 %r2, %r1, 4;\n"), 4, 2);
}

#define COPY \
    "mov.u32 %r3, s;\ncp.async.ca.shared.global [%r3], [%rd1], 4;\ncp.async.commit_group;\n"

static void test_waits(void **state)
{
    (void)state;
    const SimCounts *n = count(PART("loads_in_flight"), 1, 32);
    assert_int_equal(n->global_waits, 1); /* both in flight */
    sim_stop(&sim);
    n = count(PART("load_moves_up"), 1, 32);
    assert_int_equal(n->global_waits, 1); /* the second one moves up */
    sim_stop(&sim);
    n = count(PART("loads_in_turn"), 1, 128);
    assert_int_equal(n->global_waits, 2 * 4); /* one after the other, in 4 warps */
    assert_int_equal(n->global_waits_max, 2);
    sim_stop(&sim);
    n = count(PART("load_behind_branch"), 1, 32);
    assert_int_equal(n->global_waits, 1); /* a branch over one load predicates it */
    sim_stop(&sim);
    n = count(KERNEL(AT(4, 0) COPY COPY "cp.async.wait_group 1;\n" COPY "cp.async.wait_group 0;\n"),
              1, 32);
    assert_int_equal(n->global_waits, 2); /* for the first group, and for the last */
    sim_stop(&sim);
    n = count(KERNEL(AT(4, 0) COPY COPY "cp.async.wait_group 1;\n" COPY "cp.async.wait_group 1;\n"),
              1, 32);
    assert_int_equal(n->global_waits, 1); /* the second one arrives meanwhile */
    sim_stop(&sim);
    n = count(KERNEL(AT(4, 0) COPY "cp.async.commit_group;\ncp.async.wait_group 1;\n"), 1, 32);
    assert_int_equal(n->global_waits, 1); /* an empty group hides nothing */
    sim_stop(&sim);
    n = count(KERNEL(AT(4, 0) COPY "cp.async.wait_group 1;\n"), 1, 32);
    assert_int_equal(n->global_waits, 0);
    assert_int_equal(n->block_global_waits, 1); /* a block waits for its first copies */
    sim_stop(&sim);
}

/* Warps and blocks that exit at once do not change the counters of the slowest warp of a block. */
static void test_idle(void **state)
{
    (void)state;
    const SimCounts *n = count(PART("idle_warps"), 8, 128);
    assert_int_equal(n->warp_insts, 32 * 7 + 3 * 8);
    assert_int_equal(n->block_insts, 8 * 7 + 3 * 8);
    assert_int_equal(n->block_global_waits, 3);
    assert_int_equal(n->block_barriers, 6);
    assert_int_equal(n->block_barriers_max, 2);
    assert_int_equal(n->heaviest_insts, 4 * 7 + 8);
    assert_int_equal(n->heavy_blocks, 3);
    assert_int_equal(n->heavy_insts, 35);
    sim_stop(&sim);
}

static void test_atomics_and_constants(void **state)
{
    (void)state;
    const SimCounts *n = count(PART("atomics_and_fences"), 2, 64);
    assert_int_equal(n->global_atomic_requests, 8);
    assert_int_equal(n->global_atomic_serial, 4 * 1 + 4 * 16); /* the first is merged */
    assert_int_equal(n->barriers, 2);
    assert_int_equal(n->warp_barriers, 4);
    assert_int_equal(n->fences, 4);
    sim_stop(&sim);
    n = count(MODULE("constants_and_locals"), 1, 32);
    assert_int_equal(n->const_requests, 2);
    assert_int_equal(n->const_distinct, 4 + 1);
    assert_int_equal(n->local_load_sectors, 4); /* one row of 32 lanes */
    assert_int_equal(n->local_store_sectors,
                     4 + 16); /* lanes at four offsets: each group of 8 touches 4 rows */
    sim_stop(&sim);
}

/* The integer instructions and the waits for global memory that a warp is charged. */
static void charged(const char *ptx, uint64_t integers, uint64_t waits)
{
    const SimCounts *n = count(ptx, 1, 32);
    assert_int_equal(integers_of(n), integers);
    assert_int_equal(n->global_waits, waits);
    sim_stop(&sim);
}

#define START "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, 0;\nmov.u32 %r2, %tid.x;\n"
#define NEXT(trips) "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, " #trips ";\n@%p1 bra L;\n"
#define HALVES                                                                  \
    "shr.u32 %r3, %r1, 1;\nadd.u32 %r4, %r2, %r3;\nmul.lo.u32 %r5, %r4, %r2;\n" \
    "add.u32 %r6, %r5, %r1;\n"

/* In an unrolled loop, what depends on the counter is known, and what another trip has computed is
 * not computed again: of 16 trips two sums and products in a row are equal. */
static void test_unrolled(void **state)
{
    (void)state;
    charged(KERNEL(START "L:\n" HALVES NEXT(16)), 16 * 2, 0);
    charged(KERNEL(START "L:\n" HALVES NEXT(100)), 100 * 5, 0); /* a product and a sum are one */
    /* Of unknown trips only what reads nothing but the counter counts as known. */
    charged(PART("unknown_trips"), 1 + 16 * 3, 0);
    /* A branch inside that lanes decide. */
    charged(
        KERNEL(START
               "L:\nsetp.eq.u32 %p2, %r2, 40;\n@%p2 bra M;\nadd.u32 %r4, %r2, %r2;\nM:\n" NEXT(16)),
        16 * 2, 0);
    /* It is entered in the middle: M runs 8 times, L 7 times. */
    charged(PART("loop_from_middle"), 7, 0);
}

/* A product of 64 bits that is only added to a pointer is one instruction with the addition. */
static void test_product(void **state)
{
    (void)state;
    charged(PART("address"), 2, 0); /* two halves */
    charged(PART("product"), 4, 0);
}

/* What a block of code computes again costs nothing, unless a part of it has another value then, or it is a
 * division. */
static void test_united(void **state)
{
    (void)state;
#define AGAIN(op) op " %r4, %r2, %r2;\n" op " %r5, %r2, %r2;\n"
    charged(KERNEL(START AGAIN("mul.lo.u32")), 1, 0);
    charged(KERNEL(START "mul.lo.u32 %r4, %r2, %r2;\nxor.b32 %r2, %r2, 5;\n"
                         "mul.lo.u32 %r5, %r2, %r2;\n"),
            3, 0);
    charged(KERNEL(START "mul.lo.u32 %r4, %r2, %r2;\nL:\nmul.lo.u32 %r5, %r2, %r2;\n"), 2, 0);
    charged(KERNEL(START "div.u32 %r4, %r2, 3;\ndiv.u32 %r5, %r2, 3;\n"), 2, 0);
#undef AGAIN
}

/* Of 64 bits that lead to addresses of shared memory alone the lower half is made. */
static void test_narrowed(void **state)
{
    (void)state;
#define INDEX "mul.wide.u32 %rd2, %r2, 4;\nmov.u64 %rd3, s;\nadd.u64 %rd4, %rd3, %rd2;\n"
#define STEP "add.u64 %rd4, %rd4, 512;\n"
    charged(KERNEL(START INDEX "ld.shared.f32 %f1, [%rd4];\n"), 1, 0);
    charged(KERNEL(START INDEX STEP "ld.shared.f32 %f1, [%rd4];\n"), 2, 0);
    charged(KERNEL(START INDEX STEP "ld.shared.f32 %f1, [%rd4];\nshr.u64 %rd5, %rd4, 3;\n"), 6, 0);
#undef STEP
#undef INDEX
}

/* The assembler makes one instruction of two: the first of each pair is read by the second alone. */
static void test_fused(void **state)
{
    (void)state;
#define SUM "add.u32 %r3, %r1, %r2;\n"
    charged(KERNEL(START "and.b32 %r3, %r2, 7;\nxor.b32 %r4, %r3, %r2;\n"), 1, 0);
    charged(KERNEL(START SUM "add.u32 %r4, %r3, %r2;\n"), 1, 0);
    charged(KERNEL(START SUM "add.u32 %r4, %r3, %r2;\nadd.u32 %r5, %r4, %r2;\n"), 2, 0);
    charged(KERNEL(START SUM "add.u32 %r4, %r3, %r2;\nxor.b32 %r5, %r3, %r4;\n"), 3, 0);
    charged(KERNEL(START SUM "min.u32 %r4, %r3, 9;\n"), 1, 0);
    charged(KERNEL(START "shl.b32 %r3, %r2, 2;\nadd.u32 %r4, %r3, %r2;\n"), 1, 0);
    charged(KERNEL(START "mul.lo.u32 %r3, %r2, %r2;\nadd.u32 %r4, %r3, %r2;\n"), 1, 0);
    charged(KERNEL(START "shl.b32 %r3, %r2, %r2;\nadd.u32 %r4, %r3, %r2;\n"), 2, 0);
    charged(KERNEL(START SUM "bra L;\nL:\nadd.u32 %r4, %r3, %r2;\n"), 2, 0);
#undef SUM
}

/* Of 8 warps the first works alone, or each: a scheduler has the work of all, or a quarter of it. */
static void test_schedulers(void **state)
{
    (void)state;
#define WORK "mul.lo.u32 %r4, %r4, %r2;\n"
#define XORS XOR XOR XOR XOR XOR XOR XOR XOR XOR XOR
#define XOR "xor.b32 %r4, %r4, %r2;\n"
#define MUCH WORK WORK WORK WORK WORK WORK WORK WORK WORK WORK
    const SimCounts *n = count(KERNEL(START MUCH), 1, 256);
    assert_int_equal(n->busiest[PIPE_ISSUE], n->scheduled[PIPE_ISSUE]);
    sim_stop(&sim);
    n = count(KERNEL(START "setp.ge.u32 %p1, %r2, 32;\n@%p1 bra M;\n" MUCH "M:\n"), 1, 256);
    assert_true(n->busiest[PIPE_ISSUE] > n->scheduled[PIPE_ISSUE] * 3 / 2);
    assert_int_equal(n->busiest[PIPE_FP32], n->scheduled[PIPE_FP32] * 4);
    sim_stop(&sim);
    /* The others have as many instructions, of another pipe. */
    n = count(
        KERNEL(START "setp.ge.u32 %p1, %r2, 32;\n@%p1 bra L;\n" MUCH "bra M;\nL:\n" XORS "M:\n"), 1,
        128);
    assert_true(n->busiest[PIPE_ISSUE] < n->scheduled[PIPE_ISSUE] * 3 / 2);
    assert_int_equal(n->busiest[PIPE_FP32], n->scheduled[PIPE_FP32] * 4);
    sim_stop(&sim);
#undef MUCH
#undef XORS
#undef XOR
#undef WORK
}

/* A warp takes more of a pipe than 32 bits count: a product of 64 bits has 28 slots, and is charged as 8. */
static void test_long_warps(void **state)
{
    (void)state;
    Exec *x = memory_alloc(sizeof *x);
    x->rates.pipe[PIPE_FP32] = 1;
    for (int i = 0; i < 3; i++) x->cta.pipes[0][PIPE_FP32] += 1u << 31;
    assert_true(busy_cycles(x) == 3.0 * (1u << 31));
    free(x);
}

/* Two warps take turns, each on its scheduler; a third one works beside them. */
static void test_turns_of_schedulers(void **state)
{
    (void)state;
    enum { TURN = 100, TURNS = 4, BESIDE = 150 };
    Warp warps[3] = {{0}};
    Exec *x = memory_alloc(sizeof *x);
    x->rates.pipe[PIPE_FP32] = 2;
    for (int i = 0; i < 3; i++) warps[i].x = x, warps[i].index = i;
    for (int i = 0; i < TURNS; i++) {
        x->cta.pipes[i % 2][PIPE_FP32] += TURN;
        const WarpPath end = path_of(&warps[i % 2]);
        path_await(&warps[(i + 1) % 2], &end);
    }
    x->cta.pipes[2][PIPE_FP32] = BESIDE;
    const WarpPath first = path_of(&warps[0]), third = path_of(&warps[2]);
    assert_int_equal(busy_path_cycles(x, &first), 2 * TURNS * TURN);
    assert_int_equal(busy_path_cycles(x, &third), 2 * BESIDE);
    free(x);
}

/* Counts of two warps that execute an atomic. */
static const SimCounts *count_atomic(const char *atomic)
{
    static const char body[] =
        KERNEL("ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, s;\nshr.u32 %r4, %r1, "
               "5;\nshl.b32 %r4, %r4, 2;\nadd.u32 %r5, %r2, %r4;\nst.shared.u32 [s], 0;\n"
               "st.shared.u32 [s+4], 0;\nmov.f32 %f1, 0f3F800000;\nbar.sync 0;\n");
    char ptx[2048];
    int head = (int)(sizeof body - sizeof "ret;\n}\n");
    snprintf(ptx, sizeof ptx, "%.*s%s\nret;\n}\n", head, body, atomic);
    return count(ptx, 1, 64);
}

/* The lanes that it handles one after another. */
static void serial(const char *atomic, uint64_t expected)
{
    const SimCounts *n = count_atomic(atomic);
    if (n->shared_atomic_serial + n->global_atomic_serial != expected)
        fail_msg("%s: %llu lanes, expected %llu", atomic,
                 (unsigned long long)(n->shared_atomic_serial + n->global_atomic_serial),
                 (unsigned long long)expected);
    sim_stop(&sim);
}

/* A line and a sector of each warp; more where the result is read, and for a comparison. */
static void test_atomic_work(void **state)
{
    (void)state;
    assert_int_equal(count_atomic("red.global.add.f32 [%rd1], %f1;")->global_atomic_work, 2 * 91);
    sim_stop(&sim);
    assert_int_equal(count_atomic("atom.global.add.f32 %f2, [%rd1], %f1;")->global_atomic_work,
                     2 * 91);
    sim_stop(&sim);
    const char *read = "atom.global.add.f32 %f2, [%rd1], %f1;\nadd.f32 %f3, %f2, %f2;";
    assert_int_equal(count_atomic(read)->global_atomic_work, 2 * 163);
    sim_stop(&sim);
    assert_int_equal(count_atomic("atom.global.cas.b32 %r9, [%rd1], %r1, %r2;")->global_atomic_work,
                     2 * 273);
    sim_stop(&sim);
}

/* As an assembler for sm_90 does, by its machine code. */
static void test_merged_atomics(void **state)
{
    (void)state;
    serial("red.shared.max.s32 [%r2], %r1;", 2);
    serial("atom.shared.and.b32 %r9, [%r2+4], %r1;", 2); /* nothing reads %r9 */
    serial("atom.shared.add.u32 %r9, [%r2], %r1;\nadd.u32 %r9, %r9, 1;", 2);
    serial("atom.shared.max.s32 %r9, [%r2], %r1;\nadd.u32 %r9, %r9, 1;", 64);
    serial("red.shared.add.f32 [%r2], %f1;", 64 * 11); /* by a loop of compare and swap */
    serial("red.shared.inc.u32 [%r2], 7;", 64);
    serial("red.shared.add.u32 [%r5], %r1;", 64); /* by warps, which nobody can prove */
    serial("red.shared.add.u32 [%r5], 1;", 2);
    serial("shr.u32 %r8, %r1, 2;\nand.b32 %r8, %r8, 4;\nadd.u32 %r8, %r8, %r2;\n"
           "red.shared.add.u32 [%r8], %r1;",
           2 * 24); /* two addresses, of 16 lanes each */
    serial("red.global.add.u32 [%rd1], %r1;", 2);
    serial("ld.global.u32 %r6, [%rd1];\nadd.u32 %r7, %r2, %r6;\nred.shared.add.u32 [%r7], %r1;", 2);
    serial("red.global.add.f32 [%rd1], %f1;", 64);
    serial("red.global.add.u64 [%rd1], %rd1;", 64);
}

/* Slots beside the instructions of two warps. */
static uint64_t further_slots(const char *operation)
{
    const uint64_t slots = count_atomic(operation)->expansion_slots;
    sim_stop(&sim);
    return slots;
}

/* Groups of lanes with masks of their own take turns. */
static void test_groups_of_lanes(void **state)
{
    (void)state;
#define GROUPS \
    "mov.u32 %r6, %laneid;\nand.b32 %r6, %r6, 16;\nmov.u32 %r7, 65535;\nshl.b32 %r7, %r7, %r6;\n"
    const uint64_t none = further_slots(GROUPS);
    assert_int_equal(further_slots(GROUPS "vote.sync.ballot.b32 %r8, %p1, -1;"), none);
    assert_int_equal(further_slots(GROUPS "vote.sync.ballot.b32 %r8, %p1, %r7;"),
                     none + 2 * 2 * 12);
    assert_int_equal(further_slots(GROUPS "redux.sync.add.s32 %r8, %r1, %r7;"), none + 2 * 2 * 16);
    assert_int_equal(further_slots(GROUPS "shfl.sync.idx.b32 %r8, %r1, 0, 4127, %r7;"), none + 2);
    const uint64_t one = further_slots(GROUPS "match.any.sync.b32 %r8, %r4, -1;");
    assert_int_equal(further_slots(GROUPS "match.any.sync.b32 %r8, %r6, -1;"), one + 2 * 8);
#undef GROUPS
}

/* Sectors that a launch writes in part: by every other word, by both halves of the words in turn,
 * after it has read them, and by an atomic. */
static void test_part_sectors(void **state)
{
    (void)state;
    const SimCounts *n = count(KERNEL(AT(8, 0) "st.global.u32 [%rd1], 1;\n"), 1, 64);
    assert_int_equal(n->part_sectors, 16);
    assert_int_equal(n->covered_bytes, 256);
    sim_stop(&sim);
    n = count(KERNEL(AT(8, 0) "st.global.u32 [%rd1], 1;\nst.global.u32 [%rd1+4], 1;\n"), 1, 64);
    assert_int_equal(n->part_sectors, 0);
    assert_int_equal(n->covered_bytes, 512);
    sim_stop(&sim);
    n = count(KERNEL(AT(8, 0) "ld.global.u32 %r9, [%rd1];\nst.global.u32 [%rd1], %r9;\n"), 1, 64);
    assert_int_equal(n->part_sectors, 0);
    sim_stop(&sim);
    n = count(KERNEL(AT(8, 0) "red.global.add.u32 [%rd1], 1;\nst.global.u32 [%rd1], 1;\n"), 1, 64);
    assert_int_equal(n->part_sectors, 0);
    sim_stop(&sim);
    n = count(KERNEL(AT(4, 4) "st.global.u32 [%rd1], 1;\n"), 1, 32); /* 4 sectors and two parts */
    assert_int_equal(n->part_sectors, 2);
    assert_int_equal(n->covered_bytes, 128);
    sim_stop(&sim);
}

/* A basic block of more instructions than 16 bits can count. */
static void test_long_block(void **state)
{
    (void)state;
    enum { TIMES = 66000 };
    static const char head[] = KERNEL(AT(4, 0)),
                      once[] = "ld.global.f32 %f1, [%rd1];\nfma.rn.f32 %f2, %f1, %f1, %f1;\n"
                               "st.global.f32 [%rd1], %f1;\n";
    char *ptx = malloc(sizeof head + TIMES * sizeof once),
         *p = ptx + sizeof head - 1 - strlen("ret;\n}\n");
    memcpy(ptx, head, sizeof head);
    for (int i = 0; i < TIMES; i++) p = stpcpy(p, once);
    strcpy(p, "ret;\n}\n");
    const SimCounts *n = count(ptx, 1, 32);
    assert_int_equal(n->by_class[INST_FP32], TIMES);
    assert_int_equal(n->by_class[INST_GLOBAL_LOAD], TIMES);
    assert_int_equal(n->threads_by_class[INST_FP32], 32 * TIMES);
    assert_int_equal(n->fp32_flops, 2 * 32 * TIMES);
    assert_int_equal(n->global_waits, TIMES);
    sim_stop(&sim);
    free(ptx);
}

/* Two runs of the same launch give the same counts, time and bytes. */
static void test_repeats(void **state)
{
    (void)state;
    SimCounts first = *count(PART("exponentials"), 1, 256);
    sim_stop(&sim);
    const SimCounts *n = count(PART("exponentials"), 1, 256);
    assert_memory_equal(&first, n, sizeof first);
    sim_stop(&sim);
}

/* Requests to global memory are counted by a prediction, and not by a run that needs no time. */
static void test_uncounted(void **state)
{
    (void)state;
    static const unsigned char zeros[4096];
    KernelInfo info;
    sim_start(&sim, PART("load_and_store"));
    DevicePtr x = sim_buffer(&sim, "x", zeros, sizeof zeros);
    sim_run(&sim, ((Shape){.kernel = "k", .block = {32}}), 1, A(x));
    SimCounts n = *sim_last_counts(sim.d);
    assert_int_equal(n.thread_insts, 32 * 8);
    assert_int_equal(n.global_load_requests + n.global_store_requests, 0);
    if (ops->kernel(sim.d, sim.m, "k", &info, &sim.err)) fail_msg("%s", sim.err.text);
    DeviceLaunch l = {.module = sim.m, .kernel = "k", .grid = {1, 1, 1}, .block = {32, 1, 1}};
    memcpy(l.params + info.params[0].offset, &x, sizeof x);
    DeviceTiming *t = calloc(1, sizeof *t);
    assert_int_equal(ops->prediction->predict(sim.d, &l, 1, NULL, &sim.fault), 0);
    assert_int_equal(sim_last_counts(sim.d)->global_load_requests, 0);
    assert_int_equal(ops->prediction->predict(sim.d, &l, 1, t, &sim.fault), 0);
    assert_int_equal(sim_last_counts(sim.d)->global_load_requests, 1);
    assert_int_equal(sim_last_counts(sim.d)->global_store_requests, 1);
    assert_int_equal(t->n, 1);
    free(t);
    sim_stop(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instructions),
        cmocka_unit_test(test_divergence),
        cmocka_unit_test(test_coalescing),
        cmocka_unit_test(test_repeated_accesses),
        cmocka_unit_test(test_lone_sectors),
        cmocka_unit_test(test_banks),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_atomics_and_constants),
        cmocka_unit_test(test_merged_atomics),
        cmocka_unit_test(test_groups_of_lanes),
        cmocka_unit_test(test_atomic_work),
        cmocka_unit_test(test_unrolled),
        cmocka_unit_test(test_product),
        cmocka_unit_test(test_united),
        cmocka_unit_test(test_narrowed),
        cmocka_unit_test(test_fused),
        cmocka_unit_test(test_schedulers),
        cmocka_unit_test(test_long_warps),
        cmocka_unit_test(test_turns_of_schedulers),
        cmocka_unit_test(test_part_sectors),
        cmocka_unit_test(test_long_block),
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_uncounted),
        cmocka_unit_test(test_vector_banks),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
