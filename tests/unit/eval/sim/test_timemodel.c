/* Occupancies and times worked out by hand, rankings that hold on every GPU, and times measured on
 * an H200. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "eval/sim/time/extrapolate.h"
#include "eval/sim/time/time_model.h"

static const Profile *profile(const char *name)
{
    Error err;
    const Profile *p = profile_find(name, &err);
    if (!p) fail_msg("%s", err.text);
    return p;
}

static void occupies(const char *name, int threads, int registers, uint64_t shared, int blocks,
                     const char *limit)
{
    Occupancy o;
    Error err;
    if (occupancy_of(profile(name), (uint64_t)threads, registers, shared, &o, &err))
        fail_msg("%s", err.text);
    assert_int_equal(o.blocks_per_sm, blocks);
    assert_string_equal(o.limit, limit);
    int warps = (threads + 31) / 32;
    assert_true(fabs(o.occupancy - (double)blocks * warps / profile(name)->warps_per_sm) < 1e-12);
}

static void test_occupancy(void **state)
{
    (void)state;
    occupies("h100", 256, 32, 0, 8, "threads");   /* 64 warps / 8 */
    occupies("h100", 32, 16, 0, 32, "blocks");    /* 32 blocks of one warp: half of the warps */
    occupies("rtx3090", 64, 32, 0, 16, "blocks"); /* 16 blocks of two warps: 32 of 48 */
    occupies("l40", 64, 32, 0, 24, "threads");
    occupies("h100", 256, 100, 0, 2,
             "registers"); /* 3200 -> 3328 per warp; 4 warps per scheduler; 16 / 8 */
    occupies("h100", 128, 64, 0, 8, "registers"); /* 2048 per warp; 8 per scheduler; 32 / 4 */
    occupies("h100", 128, 32, 48 << 10, 4, "shared memory"); /* 228 KiB / 49 KiB */
    occupies("a100", 128, 32, 48 << 10, 3, "shared memory"); /* 164 / 49 */
    occupies("h100", 100, 32, 0, 16, "threads");             /* four warps, the last partial */
    Occupancy o;
    Error err;
    assert_int_equal(occupancy_of(profile("h100"), 1025, 32, 0, &o, &err), -1);
    assert_int_equal(occupancy_of(profile("h100"), 1024, 255, 0, &o, &err), -1);
    assert_non_null(strstr(err.text, "255 registers"));
    assert_int_equal(occupancy_of(profile("h100"), 128, 32, (227 << 10) + 1, &o, &err), -1);
    assert_int_equal(occupancy_of(profile("l40"), 128, 32, 100 << 10, &o, &err), -1);
    assert_int_equal(occupancy_of_arch("sm_90", 1024, 64, 0, &o), 0);
    assert_true(o.occupancy == 0.5 && !strcmp(o.limit, "registers"));
    assert_int_equal(occupancy_of_arch("sm_35", 128, 32, 0, &o), -1);
    assert_null(profile_find("b200", &err));
    assert_non_null(strstr(err.text, "a100, h100, h200, l40, rtx3090, h20"));
}

/* Fills in the counters that depend on the spread of the blocks, for blocks that do the same. */
static SimCounts alike(SimCounts c)
{
    c.block_global_waits = c.blocks * c.global_waits_max,
    c.block_local_waits = c.blocks * c.local_waits_max;
    c.block_chain_cycles = c.blocks * c.chain_cycles_max,
    c.block_insts = c.blocks * c.warp_insts_max;
    c.block_barriers_max = c.warp_barriers / c.warps,
    c.block_barriers = c.blocks * c.block_barriers_max;
    uint64_t past_l1 = c.global_load_sectors - c.l1_hit_sectors;
    if (past_l1 && !c.leader_far_waits) {
        c.leader_far_waits = c.global_waits;
        c.leader_dram_waits = c.global_waits * (past_l1 - c.l2_load_sectors) / past_l1;
    }
    c.heaviest_insts = c.heavy_insts = c.warp_insts / c.blocks, c.heavy_blocks = c.blocks;
    return c;
}

enum { PART_SMS = 4 }; /* of a GPU, for launches of few blocks */

/* The time on `sms` SMs of the GPU, with the same share of what all SMs share. */
static LaunchTime predict(const Profile *whole, const SimCounts *c, int sms)
{
    LaunchTime t;
    Error err;
    Profile part = *whole, *p = &part;
    double share = (double)sms / whole->sm_count;
    part.sm_count = sms;
    part.l2_bytes_per_s *= share, part.dram_bytes_per_s *= share;
    part.block_interval /= share, part.atomic_cycles /= share, part.atomic_hot_cycles /= share;
    SimCounts counts = c->heavy_blocks ? *c : alike(*c);
    if (timemodel_launch(p, &counts, &t, &err)) fail_msg("%s", err.text);
    assert_true(isfinite(t.seconds) && t.seconds > 0);
    return t;
}

static SimCounts grid(uint64_t blocks, uint32_t threads)
{
    SimCounts c = {.grid = {(uint32_t)blocks, 1, 1},
                   .block = {threads, 1, 1},
                   .registers = 32,
                   .blocks = blocks};
    c.warps = blocks * ((threads + 31) / 32);
    return c;
}

static void close_to(double got, double want, double within)
{
    if (!(fabs(got - want) <= within * want))
        fail_msg("%g, expected %g within %g%%", got, want, within * 100);
}

/* 64 blocks of 256 on 4 SMs of an H100: two waves of 8 per SM. 10^6 sectors of DRAM at 0.89 * 3.35
 * TB/s * 4 / 132; a block's latency is 350 + 8 * 15 (start) + 100 (chain) + 670 (one load from
 * DRAM) cycles of 1.98 GHz, of which the loads of the seven other blocks hide a part. */
static void test_dram_by_hand(void **state)
{
    (void)state;
    SimCounts c = grid(64, 256);
    c.global_load_requests = c.global_load_wavefronts = 250000,
    c.global_load_sectors = c.dram_read_sectors = 1000000, c.global_load_bytes = 32000000;
    c.global_waits = c.warps, c.global_waits_max = 1;
    c.chain_cycles = 100 * c.warps, c.chain_cycles_max = 100;
    LaunchTime t = predict(profile("h100"), &c, 4);
    double dram = 32e6 / (0.89 * 3.35e12 * 4 / 132), latency = 2 * 1240 / 1.98e9;
    close_to(t.resource_s[TIME_DRAM], dram, 1e-9);
    close_to(t.latency_s, latency, 1e-9);
    close_to(t.seconds, dram / 8 + hypot(dram * 7 / 8, latency), 1e-9);
    assert_string_equal(t.bound, "dram");
    assert_true(t.waves == 2);
    close_to(timemodel_sequence(profile("h100"), (LaunchTime[]){t, t, t}, 3),
             3 * t.seconds + 2.5e-6 + 2 * 1.1e-6, 1e-9);
}

/* 4 blocks of one warp that issue 10^5 fp32 instructions in a chain of 4 cycles each: latency
 * alone. */
static void test_latency_by_hand(void **state)
{
    (void)state;
    SimCounts c = grid(4, 32);
    c.warp_insts = c.by_class[INST_FP32] = 400000, c.warp_insts_max = 100000;
    c.chain_cycles = 4 * 400000, c.chain_cycles_max = 400000;
    LaunchTime t = predict(profile("h100"), &c, 4);
    close_to(t.resource_s[TIME_FP32], 100000 * 32 / 128 / 1.98e9, 1e-9);
    close_to(t.resource_s[TIME_ISSUE], 25000 / 1.98e9, 1e-9);
    close_to(t.seconds, (365 + sqrt(4e5 * 4e5 + 25000.0 * 25000)) / 1.98e9, 1e-9);
    assert_string_equal(t.bound, "latency");
}

/* The pipes: 10^6 warp-instructions on one SM of 64 fp32 lanes (A100) take 500000 cycles of 1.41
 * GHz, twice an H100's; integers share the fp32 lanes on an L40. */
static void test_pipes(void **state)
{
    (void)state;
    SimCounts c = grid(1000, 256);
    c.warp_insts = c.by_class[INST_FP32] = 1000000;
    close_to(predict(profile("a100"), &c, 1).resource_s[TIME_FP32], 500000 / 1.41e9, 1e-9);
    close_to(predict(profile("h100"), &c, 1).resource_s[TIME_FP32], 250000 / 1.98e9, 1e-9);
    c.by_class[INST_INT] = 1000000;
    close_to(predict(profile("l40"), &c, 1).resource_s[TIME_FP32], 500000 / 2.49e9, 1e-9);
    close_to(predict(profile("h100"), &c, 1).resource_s[TIME_FP32], 250000 / 1.98e9, 1e-9);
    /* Sums go where there is room; products take lanes of fp32. */
    c.by_class[INST_INT_ADD] = 600000;
    close_to(predict(profile("h100"), &c, 1).resource_s[TIME_INT], 500000 / 1.98e9, 1e-9);
    c.by_class[INST_INT_MUL] = 1000000;
    close_to(predict(profile("h100"), &c, 1).resource_s[TIME_INT], 650000 / 1.98e9, 1e-9);
    close_to(predict(profile("h100"), &c, 1).resource_s[TIME_FP32], 750000 / 1.98e9, 1e-9);
    close_to(predict(profile("a100"), &c, 1).resource_s[TIME_FP32], 1000000 / 1.41e9, 1e-9);
    /* One scheduler has half of a block's work: other blocks fill the others, where there are some. */
    c.scheduled[PIPE_FP32] = 1000, c.busiest[PIPE_FP32] = 2000;
    close_to(predict(profile("h100"), &c, 1).resource_s[TIME_FP32], sqrt(2) * 750000 / 1.98e9,
             1e-9);
    /* Blocks of five and six warps begin on other schedulers than the ones before, but not in turn. */
    c.block[0] = 160;
    close_to(predict(profile("h100"), &c, 1).resource_s[TIME_FP32],
             sqrt(1 + 1.0 / 3) * 750000 / 1.98e9, 1e-9);
    c.block[0] = 192;
    close_to(predict(profile("h100"), &c, 1).resource_s[TIME_FP32], sqrt(1.75) * 750000 / 1.98e9,
             1e-9);
    c.block[0] = 256;
    c.dynamic_shared = 200 << 10;
    close_to(predict(profile("h100"), &c, 1).resource_s[TIME_FP32], 1500000 / 1.98e9, 1e-9);
    c.dynamic_shared = 0;
    c.shared_load_requests = 1000, c.shared_load_wavefronts = 32000; /* all 32 lanes on one bank */
    close_to(predict(profile("h100"), &c, 1).resource_s[TIME_L1], 32000 / 1.98e9, 1e-9);
}

/* The counters of y = max(x, 0) over n floats, with `vec` floats per thread. */
static SimCounts stream(uint64_t n, uint32_t threads, uint32_t vec)
{
    SimCounts c = grid(n / (threads * vec), threads);
    c.warp_insts = c.warps * (16 + 4 * vec), c.warp_insts_max = 16 + 4 * vec,
    c.thread_insts = c.warp_insts * 32;
    c.by_class[INST_INT] = c.warps * 8, c.by_class[INST_FP32] = c.warps * vec;
    c.by_class[INST_GLOBAL_LOAD] = c.by_class[INST_GLOBAL_STORE] = c.warps;
    c.global_load_requests = c.global_store_requests = c.warps;
    c.global_load_wavefronts = c.global_store_wavefronts = c.warps * vec;
    c.global_load_bytes = c.global_store_bytes = n * 4;
    c.global_load_sectors = c.global_store_sectors = c.dram_read_sectors = c.dram_write_sectors =
        n / 8;
    c.global_waits = c.warps, c.global_waits_max = 1;
    c.chain_cycles = 50 * c.warps, c.chain_cycles_max = 50;
    return c;
}

/* Kernel times of an H200 (2^26 floats; medians of 20, less 2.75 us of launch), by block size, by
 * vector width, and with shared memory that leaves 7, 4, 2 and 1 blocks on an SM. */
static void test_h200_streams(void **state)
{
    (void)state;
    static const struct {
        uint32_t threads, vec, shared;
        double us;
    } measured[] = {{32, 1, 0, 1260},          {64, 1, 0, 630},         {128, 1, 0, 317},
                    {256, 1, 0, 199},          {512, 1, 0, 216},        {1024, 1, 0, 239},
                    {64, 4, 0, 158},           {128, 4, 0, 125},        {256, 4, 0, 125},
                    {256, 1, 28 << 10, 226},   {256, 1, 56 << 10, 356}, {256, 1, 112 << 10, 643},
                    {256, 1, 220 << 10, 1216}, {64, 1, 112 << 10, 2220}};
    const Profile *p = profile("h200");
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        SimCounts c = stream(1 << 26, measured[i].threads, measured[i].vec);
        c.dynamic_shared = measured[i].shared;
        close_to(predict(p, &c, p->sm_count).seconds * 1e6, measured[i].us, 0.15);
    }
}

/* A product of 2048 x 2048 matrices, counted by hand: the counters that all variants share. */
static SimCounts product(uint64_t blocks, uint32_t threads)
{
    SimCounts c = grid(blocks, threads);
    c.dram_read_sectors = 2 * (2048 * 2048 / 8), c.dram_write_sectors = 2048 * 2048 / 8;
    c.global_store_requests = c.global_store_wavefronts = c.warps,
    c.global_store_sectors = 4 * c.warps, c.global_store_bytes = 128 * c.warps;
    return c;
}

static void finish_product(SimCounts *c, uint64_t warp_insts, uint64_t waits, uint64_t chain)
{
    c->warp_insts_max = warp_insts, c->global_waits_max = waits, c->chain_cycles_max = chain;
    c->warp_insts = warp_insts * c->warps, c->global_waits = waits * c->warps,
    c->chain_cycles = chain * c->warps;
    c->by_class[INST_FP32] = 2048 * c->warps;
    c->l2_load_sectors = c->global_load_sectors - c->l1_hit_sectors - c->dram_read_sectors;
}

/* One output per thread without shared memory: two loads per step, one of a row (one address), one
 * of a column (128 bytes). */
static SimCounts product_naive(void)
{
    SimCounts c = product(2048 * 2048 / 256, 256);
    c.global_load_requests = c.global_load_wavefronts = c.by_class[INST_GLOBAL_LOAD] =
        c.warps * 2048 * 2;
    c.global_load_sectors = c.warps * 2048 * 5, c.global_load_bytes = c.warps * 2048 * 256;
    /* the misses of a block: 8 rows of a, and each line of b once for its 8 warps */
    c.l1_hit_sectors = c.global_load_sectors - c.blocks * (8 * 256 + 2048 * 4);
    finish_product(&c, 2048 * 5, 512, 2048 * 4);
    return c;
}

/* Tiles of t x t in shared memory, one output per thread. */
static SimCounts product_tiled(uint32_t t)
{
    SimCounts c = product(2048 / t * (2048 / t), t * t);
    uint64_t tiles = 2048 / t;
    c.static_shared = 2 * t * t * 4;
    c.global_load_requests = c.global_load_wavefronts = c.by_class[INST_GLOBAL_LOAD] =
        c.warps * tiles * 2;
    c.global_load_sectors = c.warps * tiles * 8, c.global_load_bytes = c.warps * tiles * 256;
    c.shared_load_requests = c.shared_load_wavefronts = c.by_class[INST_SHARED_LOAD] =
        c.warps * 2048 * 2;
    c.shared_store_requests = c.shared_store_wavefronts = c.by_class[INST_SHARED_STORE] =
        c.warps * tiles * 2;
    c.barriers = c.blocks * tiles * 2, c.warp_barriers = c.warps * tiles * 2;
    finish_product(&c, tiles * (3 * t + 20), tiles, tiles * (24 + 4 * t));
    return c;
}

/* Transposes of 8192 x 8192 floats: the plain strided copy, and 32 x 32 tiles whose columns are
 * 32-way conflicts unless padded. */
static SimCounts transposed(int tiled, int wavefronts)
{
    SimCounts c = grid(tiled ? 65536 : 131072, tiled ? 256 : 128);
    uint64_t requests = (1 << 26) / 32;
    c.global_load_requests = c.global_store_requests = c.global_store_wavefronts = requests;
    c.global_load_wavefronts = requests * (tiled ? 1 : 32); /* a row is a multiple of the banks */
    c.by_class[INST_GLOBAL_LOAD] = c.by_class[INST_GLOBAL_STORE] = requests;
    c.global_load_bytes = c.global_store_bytes = 1 << 28;
    c.dram_read_sectors = c.dram_write_sectors = c.global_store_sectors = requests * 4;
    c.global_load_sectors = requests * (tiled ? 4 : 32);
    c.l2_load_sectors = c.global_load_sectors - c.dram_read_sectors;
    c.lone_sectors = tiled ? 0 : c.global_load_sectors;
    c.global_waits = c.warps * (tiled ? 1 : 4), c.global_waits_max = tiled ? 1 : 4;
    c.chain_cycles_max = 150, c.chain_cycles = 150 * c.warps, c.warp_insts_max = 80,
    c.warp_insts = 80 * c.warps;
    if (!tiled) return c;
    c.static_shared = 4352, c.barriers = c.blocks, c.warp_barriers = c.warps;
    c.shared_load_requests = c.shared_store_requests = c.shared_store_wavefronts = requests;
    c.by_class[INST_SHARED_LOAD] = c.by_class[INST_SHARED_STORE] = requests;
    c.shared_load_wavefronts = requests * (uint64_t)wavefronts;
    return c;
}

/* Kernel times of an H200 in microseconds, less 2.75 us of launch. The model is within a third of
 * them and keeps their order. */
static void test_h200_kernels(void **state)
{
    (void)state;
    struct {
        SimCounts counts;
        double us;
    } measured[] = {{product_naive(), 2512}, {product_tiled(16), 2107}, {product_tiled(32), 1856},
                    {transposed(0, 0), 467}, {transposed(1, 32), 327},  {transposed(1, 1), 145}};
    const Profile *p = profile("h200");
    double previous = INFINITY;
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        double us = predict(p, &measured[i].counts, p->sm_count).seconds * 1e6;
        if (us >= previous) fail_msg("%zu: %g us are not less than %g", i, us, previous);
        close_to(us, measured[i].us, 0.33);
        previous = us;
    }
}

static void test_rankings(void **state)
{
    (void)state;
    for (int i = 0; profile_at(i); i++) {
        const Profile *p = profile_at(i);
        SimCounts scalar = stream(1 << 19, 256, 1), vector = stream(1 << 19, 256, 4),
                  small = stream(1 << 19, 32, 1);
        LaunchTime t = predict(p, &scalar, PART_SMS), v = predict(p, &vector, PART_SMS);
        assert_true(v.seconds <= t.seconds * 1.0001);
        assert_true(predict(p, &small, PART_SMS).seconds > t.seconds); /* poor occupancy */
        SimCounts apart = scalar; /* a sector per lane, loaded again and again */
        apart.global_load_wavefronts *= 8, apart.global_load_sectors *= 8,
            apart.l2_load_sectors = apart.global_load_sectors - apart.dram_read_sectors;
        apart.leader_far_waits = apart.leader_dram_waits = apart.global_waits;
        double worse =
            predict(p, &apart, PART_SMS).seconds / t.seconds; /* an L40 has L2 to spare for it */
        assert_true(worse > (strcmp(p->name, "h100") ? 0.995 : 1.2));
        /* one kernel that keeps an intermediate result in registers, against two that pass it
         * through memory */
        double two = timemodel_sequence(p, (LaunchTime[]){v, v}, 2),
               one = timemodel_sequence(p, &v, 1);
        assert_true(two > 1.5 * one);
        SimCounts conflicts = scalar, none = scalar;
        none.shared_load_requests = none.shared_load_wavefronts = conflicts.shared_load_requests =
            scalar.warps * 64;
        conflicts.shared_load_wavefronts = conflicts.shared_load_requests * 32;
        assert_true(predict(p, &conflicts, PART_SMS).seconds >
                    2 * predict(p, &none, PART_SMS).seconds);
        LaunchTime again = predict(p, &scalar, PART_SMS);
        assert_memory_equal(&again, &t, sizeof t);
    }
}

/* On an H200 a million lanes add to one address in 1840 us, and to 4096 addresses in 16 us. */
static void test_atomics(void **state)
{
    (void)state;
    const Profile *p = profile("h200");
    SimCounts c = grid(4096, 256);
    c.global_atomic_requests = c.warps, c.global_atomic_serial = 1 << 20;
    c.global_atomic_hottest = c.warps * (1 + 31 * 5 / 2); /* turns of whole warps */
    c.global_atomic_sectors = c.warps, c.global_atomic_work = 100 * c.warps;
    close_to(predict(p, &c, p->sm_count).seconds * 1e6, 1840, 0.05);
    c.global_atomic_hottest = 256;
    close_to(predict(p, &c, p->sm_count).seconds * 1e6, 16, 0.25);
}

/* Where the blocks of a sample use the same few lines again and again, all blocks of the launch do. */
static void test_few_lines(void **state)
{
    (void)state;
    SimCounts done[8], out;
    double weights[8];
    for (int i = 0; i < 8; i++) {
        done[i] = grid(800, 256);
        done[i].atomic_lines = 32, done[i].atomic_turns = 6400, weights[i] = 100;
        done[i].atomic_first_lines = i ? 0 : 32;
    }
    extrapolate_blocks(done, weights, 8, &out);
    assert_int_equal(out.hottest_shared, 6400 * 800 / 32);
    for (int i = 0; i < 8; i++)
        done[i].atomic_first_lines = i % 2 ? 0 : 32; /* neighbours share lines */
    extrapolate_blocks(done, weights, 8, &out);
    assert_int_equal(out.hottest_shared, 0);
}

/* One warp that does all the work bounds the launch, however many idle blocks there are. */
static void test_slowest_warp(void **state)
{
    (void)state;
    SimCounts c = grid(1024, 128);
    c.warp_insts = 1000000, c.warp_insts_max = 900000;
    c.chain_cycles = 4000000, c.chain_cycles_max = 3600000;
    c.block_chain_cycles = 3700000, c.block_insts = 920000,
    c.heaviest_insts = c.heavy_insts = 900000, c.heavy_blocks = 1;
    LaunchTime t = predict(profile("h100"), &c, 4);
    assert_true(t.seconds >= 3600000 / 1.98e9);
    /* One block per SM, whose one busy warp has the issue slots of the SM for itself. */
    c = grid(4, 1024);
    c.warp_insts = 4 * 41000, c.warp_insts_max = 10000, c.chain_cycles = 4 * 71000,
    c.chain_cycles_max = 40000;
    close_to(predict(profile("h100"), &c, 4).seconds, 41000 / 1.98e9, 0.05);
}

/* Extra loads that hit L1, of one to sixteen sectors, make no launch faster by more than 2%. */
static void test_junk_loads(void **state)
{
    (void)state;
    const Profile *p = profile("h100");
    for (int sparse = 0; sparse < 2; sparse++) {
        SimCounts plain = stream(1 << 19, 256, 1);
        if (sparse)
            plain.global_load_sectors = plain.dram_read_sectors = 32 * plain.global_load_requests;
        double alone = predict(p, &plain, PART_SMS).seconds;
        for (uint64_t sectors = 1; sectors <= 16; sectors *= 4)
            for (uint64_t k = 1; k <= 16; k *= 4) {
                SimCounts junk = plain;
                uint64_t more = k * plain.global_load_requests;
                junk.global_load_requests += more,
                    junk.global_load_wavefronts += more * (sectors > 4 ? sectors / 4 : 1);
                junk.global_load_sectors += more * sectors, junk.l1_hit_sectors += more * sectors;
                junk.global_load_bytes +=
                    more * (sectors == 1
                                ? 128
                                : sectors * 32); /* one sector: all lanes load the same word */
                double with = predict(p, &junk, PART_SMS).seconds;
                if (with < alone * 0.98)
                    fail_msg("%llu loads of %llu sectors: %g s, %g without", (unsigned long long)k,
                             (unsigned long long)sectors, with, alone);
            }
    }
}

/* Extra blocks without work make no launch faster: neither its last wave nor a launch of fewer
 * blocks than SMs. */
static void test_idle_blocks(void **state)
{
    (void)state;
    for (uint64_t blocks = 2; blocks <= 17; blocks += 3) {
        SimCounts c = grid(blocks, 256);
        c.warp_insts = c.warps * 4000, c.warp_insts_max = 4000,
        c.by_class[INST_FP32] = c.warps * 3000;
        c.chain_cycles = c.warps * 5000, c.chain_cycles_max = 5000;
        c.shared_load_requests = c.shared_load_wavefronts = c.warps * 1000;
        c.warp_barriers = c.warps * 100;
        c = alike(c);
        double alone = predict(profile("h100"), &c, PART_SMS).seconds;
        for (uint64_t more = 2; more * blocks <= 64; more *= 2) {
            SimCounts idle = c;
            idle.blocks *= more, idle.warps *= more, idle.grid[0] *= (uint32_t)more;
            assert_true(predict(profile("h100"), &idle, PART_SMS).seconds >= alone * 0.9999);
        }
    }
}

static void test_counters(void **state)
{
    (void)state;
    const Profile *p = profile("h100");
    SimCounts c[2] = {stream(1 << 19, 256, 1), stream(1 << 19, 256, 1)};
    LaunchTime t[2] = {predict(p, &c[0], 4), predict(p, &c[1], 4)};
    DeviceCounter list[DEVICE_MAX_COUNTERS];
    int n = timemodel_counters(p, c, t, 2, list), seen = 0;
    assert_in_range(n, 20, DEVICE_MAX_COUNTERS - 1);
    for (int i = 0; i < n; i++) {
        assert_true(isfinite(list[i].value));
        for (int j = 0; j < i; j++) assert_string_not_equal(list[i].name, list[j].name);
        if (!strcmp(list[i].name, "dram_bytes"))
            seen++, close_to(list[i].value, 2 * 2 * 4.0 * (1 << 19), 1e-12);
        if (!strcmp(list[i].name, "sectors_per_load")) seen++, close_to(list[i].value, 4, 1e-12);
        if (!strcmp(list[i].name, "launches")) seen++, close_to(list[i].value, 2, 1e-12);
        if (!strcmp(list[i].name, "time_kernels_us"))
            seen++, close_to(list[i].value, 2e6 * t[0].seconds, 1e-12);
    }
    assert_int_equal(seen, 4);
    Error err;
    LaunchTime out;
    c[0].block[0] = 2048;
    assert_int_equal(timemodel_launch(p, &c[0], &out, &err), -1);
}

/* The DRAM reads of 1000 blocks of 8 sectors, each written in part, of a buffer of `megabytes`. */
static uint64_t fills(uint64_t part, uint64_t bytes, double megabytes)
{
    SimCounts c = grid(1000, 256);
    double sectors = megabytes * 1e6 / 32;
    c.dram_write_sectors = c.global_store_sectors = (uint64_t)sectors;
    c.part_sectors = part, c.covered_bytes = bytes;
    BufferTraffic b = {.written = 8, .size = megabytes * 1e6};
    extrapolate_traffic(profile("h100"), &b, 1, 1000, &c);
    return c.dram_read_sectors;
}

/* L2 reads the rest of a sector that was written in part from DRAM. It does not where the launch
 * fits L2, and where the blocks together write all of it. */
static void test_fills(void **state)
{
    (void)state;
    assert_int_equal(fills(2000000, 32000000, 64), 2000000);
    assert_int_equal(fills(1000000, 32000000, 64), 1000000);
    assert_int_equal(fills(2000000, 32000000, 32), 0);
    assert_int_equal(fills(2000000, 64000000, 64), 0);
    assert_int_equal(fills(2000000, 63000000, 64), 1000000); /* no sector lacks less than a byte */
}

/* 1000 cycles of wavefronts on each SM. L1 is written with what comes from L2, 128 bytes a cycle. A
 * sector alone costs L2 almost as much as two. */
static void test_l1_and_l2(void **state)
{
    (void)state;
    SimCounts c = grid(1000, 256);
    c.global_load_requests = 1000, c.global_load_wavefronts = 132000;
    c.global_load_sectors = c.l1_hit_sectors = 132000;
    close_to(predict(profile("h100"), &c, 132).resource_s[TIME_L1], 1000 / 1.98e9, 1e-9);
    c.l1_hit_sectors = 0;
    LaunchTime t = predict(profile("h100"), &c, 132);
    close_to(t.resource_s[TIME_L1], 1250 / 1.98e9, 1e-9);
    close_to(t.resource_s[TIME_L2], 132000 * 32 / 10e12, 1e-9);
    c.lone_sectors = 132000;
    t = predict(profile("h100"), &c, 132);
    close_to(t.resource_s[TIME_L2], 132000 * 32 * 1.8 / 10e12, 1e-9);
    close_to(t.resource_s[TIME_L2_PORT], 500 / 1.98e9, 1e-9);
    c.again_sectors = c.strong_sectors = 132000; /* they wait for the requests before them */
    t = predict(profile("h100"), &c, 132);
    close_to(t.resource_s[TIME_L2_PORT], (500 + 1100 + 1850) / 1.98e9, 1e-9);
}

/* The DRAM reads of 64 x 1000 blocks, of which eight read each sector of 256 MB, in waves of 640. */
static uint64_t shared_reads(double first, double second)
{
    SimCounts c = grid(64000, 256);
    BufferTraffic b = {.read = 1000, .size = 256e6, .shared = {first, second}, .apart = 64};
    c.dram_read_sectors = c.global_load_sectors = 64000000;
    extrapolate_traffic(profile("h100"), &b, 1, 640, &c);
    return c.dram_read_sectors;
}

/* Blocks that share sectors do it in one wave when they are neighbours, and else in several. */
static void test_shared_reads(void **state)
{
    (void)state;
    close_to((double)shared_reads(0, 0), 64000000, 1e-3); /* 8 MB of 256 MB stay in L2 */
    assert_int_equal(shared_reads(1, 0), 8000000);
    assert_int_equal(shared_reads(0, 1), 8000000); /* a wave has ten rows of blocks */
    close_to((double)shared_reads(0, 0.5), 64000000 * 0.55, 1e-3);
}

/* The DRAM reads of 64 waves of 1000 blocks, each of 1000 sectors, of which all but one lie in `megabytes` of
 * a buffer of 256. */
static uint64_t window_reads(double megabytes)
{
    SimCounts c = grid(64000, 256);
    BufferTraffic b = {.read = 1000, .size = 256e6, .common_read = 999};
    b.common = megabytes * 1e6 / 32;
    c.dram_read_sectors = c.global_load_sectors = 64000000;
    extrapolate_traffic(profile("h100"), &b, 1, 1000, &c);
    return c.dram_read_sectors;
}

/* A window that the blocks of each wave read stays in L2, beside what they read once. Each half of L2 keeps
 * what the SMs of its side read: a window of more than that comes from DRAM again. */
static void test_windows(void **state)
{
    (void)state;
    close_to((double)window_reads(4), 64000 + 4e6 / 32, 0.001);
    close_to((double)window_reads(16), 64000 + 16e6 / 32, 0.001);
    assert_in_range(window_reads(128), 30000000, 64000000);
}

/* Turns of 64 waves of 1000 blocks with a request of 65 turns each to a line, of a buffer of 2000 pairs of
 * lines. */
static uint64_t hottest(double near)
{
    SimCounts c = grid(64000, 256);
    BufferTraffic b = {.written = 1, .size = 2000 * 256, .atomics = 1};
    c.atomic_lines = c.dram_write_sectors = 64000, c.atomic_turns = 65 * c.atomic_lines;
    c.atomic_near_lines = (uint64_t)(near * (double)c.atomic_lines);
    extrapolate_traffic(profile("h100"), &b, 1, 1000, &c);
    return c.global_atomic_hottest;
}

/* Where neighbours add to one line, a wave has a sixty-fourth of the lines, each with more turns. */
static void test_lines_at_a_time(void **state)
{
    (void)state;
    assert_int_equal(hottest(0), 65 * 64);
    assert_int_equal(hottest(1), 65 * 64000 / 31.25);
}

/* Reads of 1000 blocks that go twice over `megabytes`, past L1. */
static SimCounts passes(double megabytes)
{
    SimCounts c = grid(1000, 256);
    BufferTraffic b = {.read = 8, .size = megabytes * 1e6, .waits = 1};
    c.dram_read_sectors = (uint64_t)(megabytes * 1e6 / 32);
    c.global_load_sectors = 2 * c.dram_read_sectors;
    c.leader_dram_waits = 1000, c.leader_far_waits = 2000;
    extrapolate_traffic(profile("h100"), &b, 1, 1000, &c);
    return c;
}

/* A second pass finds what L2 holds, of which a half of the data lies in both halves: two thirds of 50 MiB;
 * over twice as much, a fifth. Its waits are as long. */
static void test_second_pass(void **state)
{
    (void)state;
    SimCounts small = passes(33), large = passes(2 * 50 * 1.048576 * 2 / 3);
    assert_int_equal(small.dram_read_sectors, 33e6 / 32);
    assert_int_equal(small.leader_dram_waits, 1000);
    close_to((double)large.dram_read_sectors, (1 + 0.797) * 66.6667 * 1048576 / 32, 0.001);
    close_to((double)large.leader_dram_waits, 1797, 0.001);
}

/* 4000 blocks, 1000 at a time, wait once for parts of their own and nine times for what all of them read. The
 * latter is near, but for the first wave and for the first of an SM's blocks. */
static void test_shared_waits(void **state)
{
    (void)state;
    SimCounts c = grid(4000, 256);
    const BufferTraffic b[] = {
        {.read = 400, .size = 40e6, .waits = 4},
        {.read = 400, .size = 1e4, .common = 312.5, .common_read = 400, .waits = 36}};
    const double sectors = 40e6 / 32, near = 1 - 132 / 1000.0;
    c.dram_read_sectors = c.global_load_sectors = (uint64_t)(2 * sectors);
    c.leader_dram_waits = c.leader_far_waits = 10000;
    extrapolate_traffic(profile("h100"), b, 2, 1000, &c);
    close_to((double)c.leader_dram_waits, 10000 * (0.25 + 0.75 * 0.1), 0.001);
    close_to((double)c.leader_far_waits, 10000 * (1 - 0.75 * 0.9 * near), 0.001);
}

/* Seconds of so many waves of blocks that keep the pipes busy for 16,000 cycles, and wait as long. */
static double computing(int waves)
{
    SimCounts c = grid(132ull * 8 * (uint64_t)waves, 256);
    c.warp_insts = c.warps * 1000, c.warp_insts_max = 1000;
    c.by_class[INST_FP32] = c.warp_insts;
    c.chain_cycles_max = 16000;
    return predict(profile("h100"), &c, 132).seconds;
}

/* Blocks that start together compute and wait more behind one another than later ones, which are out of
 * step. */
static void test_later_waves(void **state)
{
    (void)state;
    const double hz = profile("h100")->clock_hz, start = 350 + 8 * 15;
    close_to(computing(1) * hz, start + hypot(16000, 16000), 0.001);
    close_to((computing(3) - computing(2)) * hz,
             start / 4 + cbrt(pow(16000, 3) + pow(16000 + start * 3 / 4, 3)), 0.001);
}

/* What a second pass over 50 MB by `between` of all loads behind the first one reads of DRAM, as a
 * multiple, where the block before has read a part `near` of them, too. */
static double read_again(double between, double near)
{
    SimCounts c = grid(1000, 256);
    const BufferTraffic pass = {.read = 8, .size = 50e6, .waits = 1};
    c.dram_read_sectors = (uint64_t)(50e6 / 32);
    c.global_load_sectors = 2 * c.dram_read_sectors;
    c.near_sectors = (uint64_t)(near * 50e6 / 32);
    c.aged_sectors = between > 0 ? c.dram_read_sectors : 0;
    c.aged_loads = (uint64_t)((double)c.aged_sectors * 50e6 / 32 / 1000 * between);
    extrapolate_traffic(profile("h100"), &pass, 1, 1000, &c);
    return (double)c.dram_read_sectors / (50e6 / 32);
}

/* L2 keeps what blocks read again soon. A whole pass between is what is taken where nothing is known. */
static void test_again(void **state)
{
    (void)state;
    close_to(read_again(0.1, 0), 1, 0.001);
    assert_true(read_again(0, 0) > 1.5);
    close_to(read_again(1, 0), read_again(0, 0), 0.001);
    assert_true(read_again(0.8, 0) < read_again(1, 0));
    /* Half of what a block reads are weights: its own half lies between. */
    close_to(read_again(0.5, 0.5), read_again(1, 0), 0.001);
}

/* The waits behind copies, of whatever buffers, are those of the launch's mean: half of what the copies read
 * comes from DRAM. */
static void test_copies(void **state)
{
    (void)state;
    SimCounts shared = grid(4000, 256);
    const BufferTraffic b[] = {{.read = 400, .size = 40e6},
                               {.read = 400, .size = 1e4, .common = 312.5, .common_read = 400}};
    shared.dram_read_sectors = shared.global_load_sectors = (uint64_t)(2 * 40e6 / 32);
    shared.leader_dram_waits = shared.leader_far_waits = 10000, shared.copy_waits = 40;
    extrapolate_traffic(profile("h100"), b, 2, 1000, &shared);
    close_to((double)shared.leader_dram_waits, 10000 * (0.25 + 0.75 * 0.5), 0.001);
    assert_int_equal(shared.leader_far_waits, 10000);
}

/* The waits for DRAM, of 1000, of 4000 blocks that read one sector, `resident` at a time. */
static uint64_t cold_waits(double resident)
{
    SimCounts c = grid(4000, 256);
    BufferTraffic b = {.read = 1, .size = 32, .waits = 1};
    c.dram_read_sectors = c.global_load_sectors = 4000;
    c.leader_dram_waits = c.leader_far_waits = 1000;
    extrapolate_traffic(profile("h100"), &b, 1, resident, &c);
    return c.leader_dram_waits;
}

/* The blocks of the first wave wait together for what one of them loads; later ones find it in L2. */
static void test_first_wave(void **state)
{
    (void)state;
    assert_int_equal(cold_waits(8000), 1000);
    assert_int_equal(cold_waits(4000), 1000);
    assert_int_equal(cold_waits(1000), 250);
    assert_int_equal(cold_waits(400), 100);
}

/* Cycles of a warp alone for 1000 instructions of a class. */
static double alone(const char *name, InstClass a)
{
    SimCounts c = grid(1, 32);
    LatencyParts parts;
    c.by_class[a] = c.warp_insts = c.block_insts = c.warp_insts_max = 1000;
    timemodel_latency(profile(name), &c, &parts);
    return parts.chain;
}

/* A scheduler has a quarter of each pipe, and its only warp issues in order. */
static void test_intervals(void **state)
{
    (void)state;
    close_to(alone("h100", INST_FP32), 1000, 1e-12);
    close_to(alone("a100", INST_FP32), 2000, 1e-12);
    close_to(alone("h100", INST_INT), 2000, 1e-12);
    close_to(alone("h100", INST_SHARED_LOAD), 4000, 1e-12);
    close_to(alone("h100", INST_SFU), 8000, 1e-12);
    close_to(alone("l40", INST_FP64), 64000, 1e-12);
    close_to(alone("h100", INST_BRANCH), 1000, 1e-12);
    SimCounts c = grid(1, 32);
    c.by_class[INST_INT] = c.warp_insts = c.block_insts = c.warp_insts_max = 1000000;
    close_to(predict(profile("h100"), &c, 1).seconds, (2e6 + 365) / 1.98e9, 0.04);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_occupancy),       cmocka_unit_test(test_dram_by_hand),
        cmocka_unit_test(test_latency_by_hand), cmocka_unit_test(test_pipes),
        cmocka_unit_test(test_h200_streams),    cmocka_unit_test(test_h200_kernels),
        cmocka_unit_test(test_rankings),        cmocka_unit_test(test_atomics),
        cmocka_unit_test(test_few_lines),       cmocka_unit_test(test_slowest_warp),
        cmocka_unit_test(test_junk_loads),      cmocka_unit_test(test_idle_blocks),
        cmocka_unit_test(test_counters),        cmocka_unit_test(test_fills),
        cmocka_unit_test(test_l1_and_l2),       cmocka_unit_test(test_shared_reads),
        cmocka_unit_test(test_second_pass),     cmocka_unit_test(test_shared_waits),
        cmocka_unit_test(test_first_wave),      cmocka_unit_test(test_windows),
        cmocka_unit_test(test_lines_at_a_time), cmocka_unit_test(test_intervals),
        cmocka_unit_test(test_later_waves),     cmocka_unit_test(test_again),
        cmocka_unit_test(test_copies)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
