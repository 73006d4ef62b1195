/* Clusters of several blocks: their special registers, addresses, barrier, mbarriers and copies, and what is
 * refused. A kernel k(y, n) of one cluster is made of a body. */
#include "tests/fixture_path.h"
#include "tests/unit/eval/sim/sim_checks.h"

enum { WORDS = 512 };
static uint32_t y[WORDS];

/* Runs the body in clusters of the dimensions, in one of the two orders. Returns as sim_try. */
static int run(const char *dims, uint32_t grid, uint32_t block, const char *body, int reversed)
{
    char source[16384];
    snprintf(source, sizeof source, "#define DIMS %s\n%s\n#line 1\n%s\n}\n", dims,
             sim_text("sim/clusters.cu", NULL, "head"), body);
    sim_start_cuda(&sim, source);
    ops->prediction->disturb(sim.d, reversed);
    DevicePtr py = sim_buffer(&sim, "y", NULL, sizeof y);
    int r = sim_try(&sim, shape(grid, block), 2, A(py), A(3));
    if (!r) sim_read(&sim, py, y, grid * block * sizeof *y);
    return r;
}

static void refuse(const char *body, Outcome outcome, const char *part)
{
    int r = run("2, 1, 1", 2, 64, body, 0);
    expect(r, outcome, sim.fault.line, part);
}

/* In both orders, since neither finds it alone on a device. */
static void refuse_both(const char *body, Outcome outcome)
{
    for (int reversed = 0; reversed < 2; reversed++) {
        int r = run("2, 1, 1", 2, 64, body, reversed);
        if (!r || sim.fault.outcome != outcome)
            fail_msg("%s expected, found %s: %s", outcome_name(outcome),
                     outcome_name(sim.fault.outcome), sim.fault.message);
        sim_stop(&sim);
    }
}

/* ---- what runs ---- */

static void accept_both(const char *dims, uint32_t grid, const char *body,
                        uint32_t (*want)(uint32_t block, uint32_t t))
{
    for (int reversed = 0; reversed < 2; reversed++) {
        accept(run(dims, grid, 64, body, reversed));
        for (uint32_t i = 0; i < grid * 64; i++)
            if (y[i] != want(i / 64, i % 64))
                fail_msg("word %u is %u and not %u", i, y[i], want(i / 64, i % 64));
    }
}

static uint32_t place(uint32_t block, uint32_t t)
{
    uint32_t x = block % 4 / 2, id = block / 2 % 2, rank = block % 2 + 2 * (block / 4);
    uint32_t of[] = {block % 2, block / 4, 2, 2, rank, 4, id, 2, 1};
    return t < 9 ? of[t] : x == id ? 0 : 1;
}

static void test_special_registers(void **state)
{
    (void)state;
    static const char *const names[] = {"cluster_ctaid.x",  "cluster_ctaid.y", "cluster_nctaid.x",
                                        "cluster_nctaid.y", "cluster_ctarank", "cluster_nctarank",
                                        "clusterid.x",      "nclusterid.x",    "nclusterid.y"};
    char body[2048] = "y += 256 * blockIdx.y; U v = 0; ";
    for (int i = 0; i < 9; i++)
        snprintf(body + strlen(body), sizeof body - strlen(body),
                 "{ U w; ASM(\"mov.u32 %%0, %%%%%s;\" : \"=r\"(w)); if (t == %d) v = w; } ",
                 names[i], i);
    strcat(body, "y[first + t] = v;");
    char source[16384];
    snprintf(source, sizeof source, "#define DIMS 2, 2, 1\n%s%s}\n",
             sim_text("sim/clusters.cu", NULL, "head"), body);
    sim_start_cuda(&sim, source);
    DevicePtr py = sim_buffer(&sim, "y", NULL, sizeof y);
    Shape sh = {.kernel = "k", .grid = {4, 2}, .block = {64}};
    sim_run(&sim, sh, 2, A(py), A(0));
    sim_read(&sim, py, y, sizeof y);
    for (uint32_t i = 0; i < 512; i++) assert_int_equal(y[i], place(i / 64, i % 64));
    sim_stop(&sim);
}

static uint32_t is_explicit(uint32_t block, uint32_t t)
{
    (void)block, (void)t;
    return 1;
}

static void test_explicit(void **state)
{
    (void)state;
    accept_both(
        "2, 1, 1", 2,
        "U v; ASM(\"{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.b32 %0, 1, 0, p; "
        "}\" : \"=r\"(v)); y[first + t] = v;",
        is_explicit);
}

static uint32_t neighbour(uint32_t block, uint32_t t)
{
    return 1000 * (block ^ 1) + 63 - t;
}

static uint32_t ranks(uint32_t block, uint32_t t)
{
    return t == 0 ? block % 2 ^ 1 : t == 1 ? block % 2 : t == 2 ? 1 : t == 3 ? 0 : 1;
}

static void test_addresses(void **state)
{
    (void)state;
    accept_both("2, 1, 1", 6,
                "s[t] = 1000 * blockIdx.x + t; SYNC;\n"
                "y[first + t] = get(map(at(s + 63 - t), other)); SYNC;",
                neighbour);
    accept_both("2, 1, 1", 6,
                "s[t] = 1000 * blockIdx.x + t; SYNC;\n"
                "y[first + t] = mapg(s, other)[63 - t]; SYNC;",
                neighbour);
    /* a mapped address of the block's own memory, and one mapped twice */
    accept_both("2, 1, 1", 6,
                "put(map(at(s + t), r), 1000 * blockIdx.x + t); SYNC;\n"
                "y[first + t] = get(map(map(at(s + 63 - t), r), other)); SYNC;",
                neighbour);
    accept_both("2, 1, 1", 4, sim_text("sim/clusters.cu", NULL, "ranks"), ranks);
}

static uint32_t sums(uint32_t block, uint32_t t)
{
    (void)block;
    return t < 8 ? 8 * 64 / 8 * (t + 1) : 0;
}

static uint32_t swapped(uint32_t block, uint32_t t)
{
    return 1000 * (block ^ 1) + t + 7;
}

static void test_accesses(void **state)
{
    (void)state;
    /* atomics of eight blocks on the memory of the first */
    accept_both(
        "8, 1, 1", 8,
        "s[t] = 0; SYNC; ASM(\"red.shared::cluster.add.u32 [%0], %1;\" :: \"r\"(map(at(s + t % "
        "8), t % 2)), \"r\"(t % 8 + 1) : \"memory\"); SYNC;\n"
        "U v = t < 8 ? get(map(at(s + t), t % 2)) : 0; SYNC; y[first + t] = v;",
        sums);
    /* a vector store and bytes into another block, whose words were not written before */
    accept_both(
        "2, 1, 1", 4,
        "SYNC; if (t < 16) { U v = 1000 * blockIdx.x + 4 * t + 7; "
        "ASM(\"st.shared::cluster.v4.u32 [%0], {%1, %2, %3, %4};\" :: \"r\"(map(at(s + 4 * t), "
        "other)), \"r\"(v), \"r\"(v + 1), \"r\"(v + 2), \"r\"(v + 3) : \"memory\"); } SYNC;\n"
        "y[first + t] = s[t];",
        swapped);
    /* arrival and wait apart, with work on other words between */
    accept_both(
        "2, 1, 1", 4,
        "__shared__ U own[64]; s[t] = 1000 * blockIdx.x + t + 7; ARRIVE; own[t] = t; WAIT;\n"
        "y[first + t] = get(map(at(s + t), other)) + own[t] - t; SYNC;",
        swapped);
    /* lanes that name different blocks */
    accept_both(
        "2, 1, 1", 4,
        "s[t] = 1000 * blockIdx.x + t + 7; SYNC;\n"
        "U v = get(map(at(s + t), t % 2)); y[first + t] = 1000 * (blockIdx.x ^ 1) + v % 1000; "
        "SYNC;",
        swapped);
    /* global memory, ordered by the barrier */
    accept_both("2, 1, 1", 4,
                "y[first + t] = 1000 * blockIdx.x + t + 7; SYNC; U v = y[(first ^ 64) + t]; SYNC;\n"
                "y[first + t] = v;",
                swapped);
}

/* ---- mbarriers and copies ---- */

static uint32_t rounds(uint32_t block, uint32_t t)
{
    return 3 * (1000 * (block ^ 1) + t) + 3;
}

static void test_signals(void **state)
{
    (void)state;
    /* three rounds: each thread fills the other block's word and signals; both mbarriers say "full", a
     * barrier of the cluster says "empty" */
    accept_both("2, 1, 1", 4, sim_text("sim/clusters.cu", NULL, "rounds_by_signals"), rounds);
    /* st.async, which the mbarrier counts */
    accept_both("2, 1, 1", 4, sim_text("sim/clusters.cu", NULL, "rounds_by_async_stores"), rounds);
    /* into the block itself, as vectors */
    accept_both("2, 1, 1", 4, sim_text("sim/clusters.cu", NULL, "rounds_of_vectors"), rounds);
    /* a copy from block to block */
    accept_both("2, 1, 1", 4, sim_text("sim/clusters.cu", NULL, "rounds_by_copies"), rounds);
}

static uint32_t pipeline(uint32_t block, uint32_t t)
{
    return block % 2 ? 6 * t + 15 : 0;
}

static void test_ring(void **state)
{
    (void)state;
#define READ "sum += s[32 * stage + t % 32]"
    const char *ring = sim_text("sim/clusters.cu", NULL, "ring");
    char body[4096];
    snprintf(body, sizeof body,
             "\n#define READ_FIRST %s\n#define EMPTY __syncthreads()\n#define READ_LATER\n%s", READ,
             ring);
    accept_both("2, 1, 1", 4, body, pipeline);
    /* a stage that is given back before it is read */
    snprintf(body, sizeof body,
             "\n#define READ_FIRST\n#define EMPTY\n#define READ_LATER __syncthreads(); %s\n%s",
             READ, ring);
    refuse_both(body, OUTCOME_RACE);
}

/* Bulk copies of a block whose mbarrier another block completes are its own. */
static void test_foreign_end(void **state)
{
    (void)state;
    accept_both("2, 1, 1", 4, sim_text("sim/clusters.cu", NULL, "rounds_of_global_copies"), rounds);
}

/* A flag in another block's memory, released by a fence and a volatile store. */
static void test_flags(void **state)
{
    (void)state;
    accept_both("2, 1, 1", 4,
                "__shared__ U flag; if (t == 0) flag = 0; SYNC; put(map(at(s + t), other), 1000 * "
                "blockIdx.x + t + 7); __syncthreads(); if (t == 0) { __threadfence(); *(volatile U "
                "*)mapg(&flag, other) = 1; while (*(volatile U *)&flag == 0); __threadfence(); } "
                "__syncthreads(); y[first + t] = s[t]; SYNC;",
                swapped);
}

/* ---- what is refused ---- */

static void test_races(void **state)
{
    (void)state;
    /* written, and read by the other block with no barrier of the cluster between */
    refuse_both("SYNC; s[t] = t; __syncthreads(); y[first + t] = get(map(at(s + t), other)); SYNC;",
                OUTCOME_RACE);
    refuse_both("SYNC; put(map(at(s + t), other), t); __syncthreads(); y[first + t] = s[t]; SYNC;",
                OUTCOME_RACE);
    /* read, and written without one */
    refuse_both("s[t] = t; SYNC; U v = get(map(at(s + t), other)); __syncthreads(); s[t] = 5 + v; "
                "SYNC; y[first + t] = s[t];",
                OUTCOME_RACE);
    /* two blocks write the memory of one of them, or change it by atomics and read it */
    refuse_both("SYNC; put(map(at(s + t), 0), r); SYNC; y[first + t] = s[t];", OUTCOME_RACE);
    refuse_both(
        "s[t] = 0; SYNC; ASM(\"red.shared::cluster.add.u32 [%0], 1;\" :: \"r\"(map(at(s + t), "
        "other)) : \"memory\"); __syncthreads(); y[first + t] = s[t]; SYNC;",
        OUTCOME_RACE);
    /* an arrival without a wait */
    refuse_both("s[t] = t; ARRIVE; y[first + t] = get(map(at(s + t), other)); WAIT; SYNC;",
                OUTCOME_RACE);
    /* what is written between the arrival and the wait is not ordered before it */
    refuse_both("SYNC; ARRIVE; s[t] = t; WAIT; y[first + t] = get(map(at(s + t), other)); SYNC;",
                OUTCOME_RACE);
    /* an arrival that releases nothing */
    refuse_both("SYNC; s[t] = t; ASM(\"barrier.cluster.arrive.relaxed;\" ::: \"memory\"); WAIT; "
                "y[first + t] = get(map(at(s + t), other)); SYNC;",
                OUTCOME_RACE);
    /* a copy that is not awaited */
    refuse_both(
        "if (t == 0) { init(at(&bar), 1); expect(at(&bar), 256); } s[t] = 0; __syncthreads(); "
        "SYNC;\n"
        "ASM(\"st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];\" :: "
        "\"r\"(map(at(s + t), other)), \"r\"(t), \"r\"(map(at(&bar), other)) : \"memory\");\n"
        "y[first + t] = s[t]; SYNC;",
        OUTCOME_RACE);
    /* the same value again changes nothing */
    accept(run("2, 1, 1", 2, 64,
               "s[t] = 7; SYNC; put(map(at(s + t), 0), 7); SYNC; y[first + t] = s[t];", 0));
}

static void test_presence(void **state)
{
    (void)state;
    refuse("s[t] = t;\ny[first + t] = get(map(at(s + t), other));", OUTCOME_RACE,
           "with no cluster barrier before, without which that block may not have started");
    /* a barrier that releases nothing is enough before an exit */
    accept(run("2, 1, 1", 2, 64,
               "s[t] = t; SYNC; y[first + t] = get(map(at(s + t), other)); "
               "ASM(\"barrier.cluster.arrive.relaxed;\" ::: \"memory\"); WAIT;",
               0));
    /* a block exits while the other one still reads: found in either order */
    refuse_both("s[t] = t; SYNC; y[first + t] = r ? 0 : get(map(at(s + t), 1));", OUTCOME_RACE);
    refuse("s[t] = t; SYNC;\nif (r == 0) y[first + t] = get(map(at(s + t), 1));\n"
           "else y[first + t] = 0;",
           OUTCOME_RACE, "accesses shared memory of block 1 of its cluster, which has exited");
}

/* v, which has a value for some n only */
#define MAYBE                                                                                     \
    "U v; ASM(\"{ .reg .pred p; .reg .b32 q; setp.gt.u32 p, %1, 9; @p mov.b32 q, 1; mov.b32 %0, " \
    "q; }\" : \"=r\"(v) : \"r\"(n)); "

static void test_unwritten(void **state)
{
    (void)state;
    refuse("if (t < 32) s[t] = t; SYNC;\ny[first + t] = get(map(at(s + t), other)); SYNC;",
           OUTCOME_OUT_OF_BOUNDS, "that no thread of the block has written");
    refuse(MAYBE "s[t] = v; SYNC; y[first + t] = get(map(at(s + t), other)); SYNC;",
           OUTCOME_UNINITIALISED, "has no value");
    refuse(MAYBE "SYNC; put(map(at(s + t), other), v); SYNC; y[first + t] = s[t]; "
                 "SYNC;",
           OUTCOME_UNINITIALISED, "has no value");
    refuse("s[t] = t; SYNC;\ny[first + t] = get(map(at(s + t + 64), other)); SYNC;",
           OUTCOME_OUT_OF_BOUNDS, "of the block's shared memory, which has");
}

static void test_misuse(void **state)
{
    (void)state;
    refuse("s[t] = t; SYNC;\ny[first + t] = get(map(at(s + t), n)); SYNC;", OUTCOME_OUT_OF_BOUNDS,
           "maps an address to block 3 of a cluster of 2 blocks");
    refuse(
        "s[t] = t; SYNC;\nU v; ASM(\"ld.shared.u32 %0, [%1];\" : \"=r\"(v) : \"r\"(map(at(s + t), "
        "other)) : \"memory\"); y[first + t] = v; SYNC;",
        OUTCOME_OUT_OF_BOUNDS, "with an instruction for its own: use shared::cluster");
    refuse("ARRIVE;\nARRIVE; WAIT;", OUTCOME_RACE, "arrives a second time");
    refuse("\nWAIT;", OUTCOME_RACE, "has not arrived");
    refuse("SYNC;\nif (r == 0 && t < 32) SYNC; else ASM(\"bar.sync 1, 96;\");", OUTCOME_RACE,
           "waits for ever at a barrier: 32 of 96 threads of the block reach it");
    refuse(
        "if (t == 0) init(at(&bar), 1); SYNC;\nif (t == 0) await(map(at(&bar), other), 0); SYNC;",
        OUTCOME_OUT_OF_BOUNDS, "of its cluster for more than an arrival");
    refuse("if (t == 0) init(at(&bar), 1); SYNC;\nif (t == 0) "
           "ASM(\"st.async.shared::cluster.mbarrier::"
           "complete_tx::bytes.u32 [%0], %1, [%2];\" :: \"r\"(map(at(s + t), other)), \"r\"(t), "
           "\"r\"(at(&bar)) : \"memory\"); SYNC;",
           OUTCOME_OUT_OF_BOUNDS, "counts at an mbarrier of another");
    /* addresses of a block that the cluster does not have */
    refuse("if (t == 0) init(at(&bar), 1); SYNC;\nif (t == 0) signal(at(&bar) + (9 << 24)); SYNC;",
           OUTCOME_OUT_OF_BOUNDS, "of the block's shared memory, which has");
    refuse("s[t] = t; SYNC;\ny[first + t] = get(at(s + t) + (9 << 24)); SYNC;",
           OUTCOME_OUT_OF_BOUNDS, "of the block's shared memory, which has");
    /* exited threads do not hold up the others */
    accept(run("2, 1, 1", 2, 64, "y[first + t] = 1; if (r && t < 32) return; SYNC;", 0));
}

static void test_sizes(void **state)
{
    (void)state;
    expect(run("16, 1, 1", 16, 32, "y[first + t] = r;", 0), OUTCOME_LAUNCH_ERROR, 0,
           "clusters of 16 blocks: at most 8 are allowed");
    expect(run("4, 1, 1", 6, 32, "y[first + t] = r;", 0), OUTCOME_LAUNCH_ERROR, 0,
           "no multiple of its clusters of (4,1,1)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_special_registers),
        cmocka_unit_test(test_explicit),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_accesses),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_foreign_end),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_races),
        cmocka_unit_test(test_presence),
        cmocka_unit_test(test_unwritten),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_sizes),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
