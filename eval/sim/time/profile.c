/* The table of profiles. Error messages list them in this order. */
#include "eval/sim/time/profile.h"

#include <string.h>

#include "base/buffer.h"

/* Of the calibration kernels on an H100 and an H200 (docs/measurements/timemodel.md). Of the other
 * GPUs nothing is measured: theirs is an assumption. */
#define ERROR_MEASURED 1.4
#define ERROR_ASSUMED 2.5

/* Common to all: an SM has four schedulers, each of which issues one warp-instruction per cycle. */
#define AMPERE_AND_LATER                                                                           \
    .threads_per_block = 1024, .registers_per_sm = 65536, .register_unit = 256,                    \
    .shared_reserved = 1024, .shared_unit = 128, .sfu_lanes = 16, .lsu_lanes = 32,                 \
    .shuffle_lanes = 32, .l1_bytes = 128, .l2_bytes = 64, .far_bytes = 16, .fill_bytes = 24,       \
    .const_cycles = 2.8, .barrier_cycles = 13, .barrier_warp_cycles = 2, .block_interval = 1.2,    \
    .block_cycles = 350, .block_warp_cycles = 15, .atomic_cycles = 0.03, .atomic_hot_cycles = 1.4, \
    .shared_atomic_cycles = 1.07, .arrival_cycles = 1.9, .fence_cycles = 15,                       \
    .block_fence_cycles = 4, .remote_arrival_cycles = 9, .store_line_cycles = 3.2,                 \
    .again_cycles = 1.1, .strong_again_cycles = 1.85, .mbarrier_cycles = 4.2,                      \
    .stored_again_cycles = 3.1, /* store_then_load of tests/bench/rates, an H200, 2026-11-29 */    \
        .store_sector_cycles = 1.4, .single_sector_cycles = 2.0, .lone_sector_cost = 0.8

/* Compute capability 9.0. Latencies, intervals and overheads are measured on an H200. */
#define HOPPER                                                                                   \
    AMPERE_AND_LATER, .arch = "sm_90", .mma_share = 0.60, .l1_size = 256 << 10,                  \
                      .clock_hz = 1.98e9, .threads_per_sm = 2048, .warps_per_sm = 64,            \
                      .blocks_per_sm = 32, .shared_per_sm = 228 << 10,                           \
                      .shared_per_block = 227 << 10, .fp32_lanes = 128, .int_lanes = 64,         \
                      .fp16_lanes = 128, .fp64_lanes = 64, .error_factor = ERROR_MEASURED,       \
                      .l1_cycles = 40, .l2_cycles = 375, .dram_cycles = 670, .launch_s = 2.5e-6, \
                      .gap_s = 1.1e-6, .l2_share = 0.5

/* Compute capabilities 8.6 and 8.9: half of the fp32 lanes are also the integer lanes. */
#define AMPERE_GRAPHICS                                                                            \
    AMPERE_AND_LATER, .l1_size = 128 << 10, .threads_per_sm = 1536, .warps_per_sm = 48,            \
                      .shared_per_sm = 100 << 10, .shared_per_block = 99 << 10, .fp32_lanes = 128, \
                      .int_lanes = 64, .int_shares_fp32 = 1, .mma_share = 1, .fp16_lanes = 128,    \
                      .fp64_lanes = 2, .error_factor = ERROR_ASSUMED, .launch_s = 2.5e-6,          \
                      .gap_s = 1.2e-6, .l2_share = 1

static const Profile profiles[] = {
    {AMPERE_AND_LATER,
     .name = "a100",
     .title = "A100 SXM 80 GB, simulated",
     .arch = "sm_80",
     .sm_count = 108,
     .clock_hz = 1.41e9,
     .l1_size = 192 << 10,
     .threads_per_sm = 2048,
     .warps_per_sm = 64,
     .blocks_per_sm = 32,
     .shared_per_sm = 164 << 10,
     .shared_per_block = 163 << 10,
     .fp32_lanes = 64,
     .int_lanes = 64,
     .fp16_lanes = 128,
     .fp64_lanes = 32,
     .tensor_flops = 2048,
     .mma_share = 1,
     .l2_bytes_per_s = 4.4e12,
     .dram_bytes_per_s = 2.039e12,
     .dram_efficiency = 0.89,
     .memory_bytes = 80ull << 30,
     .l2_size = 40ull << 20,
     .l1_cycles = 35,
     .l2_cycles = 220,
     .dram_cycles = 520,
     .launch_s = 2.5e-6,
     .gap_s = 1.1e-6,
     .l2_share = 0.5,
     .error_factor = ERROR_ASSUMED},
    {HOPPER, .name = "h100", .title = "H100 SXM, simulated", .sm_count = 132, .tensor_flops = 4096,
     .l2_bytes_per_s = 10.0e12, .dram_bytes_per_s = 3.35e12, .dram_efficiency = 0.89,
     .memory_bytes = 80ull << 30, .l2_size = 50ull << 20},
    {HOPPER, .name = "h200", .title = "H200 SXM, simulated", .sm_count = 132, .tensor_flops = 4096,
     .l2_bytes_per_s = 10.0e12, .dram_bytes_per_s = 4.8e12, .dram_efficiency = 0.89,
     .memory_bytes = 141ull << 30, .l2_size = 60ull << 20},
    {AMPERE_GRAPHICS, .name = "l40", .title = "L40, simulated", .arch = "sm_89", .sm_count = 142,
     .clock_hz = 2.49e9, .blocks_per_sm = 24, .tensor_flops = 1024, .l2_bytes_per_s = 4.2e12,
     .dram_bytes_per_s = 0.864e12, .dram_efficiency = 0.88, .memory_bytes = 48ull << 30,
     .l2_size = 96ull << 20, .l1_cycles = 33, .l2_cycles = 280, .dram_cycles = 680},
    {AMPERE_GRAPHICS, .name = "rtx3090", .title = "GeForce RTX 3090, simulated", .arch = "sm_86",
     .sm_count = 82, .clock_hz = 1.695e9, .blocks_per_sm = 16, .tensor_flops = 512,
     .l2_bytes_per_s = 2.2e12, .dram_bytes_per_s = 0.936e12, .dram_efficiency = 0.91,
     .memory_bytes = 24ull << 30, .l2_size = 6ull << 20, .l1_cycles = 33, .l2_cycles = 240,
     .dram_cycles = 500},
    {HOPPER, .name = "h20", .title = "H20, simulated", .sm_count = 78, .tensor_flops = 1024,
     .l2_bytes_per_s = 5.9e12, .dram_bytes_per_s = 4.0e12, .dram_efficiency = 0.89,
     .memory_bytes = 96ull << 30, .l2_size = 60ull << 20},
};
enum { N_PROFILES = sizeof profiles / sizeof *profiles };

const Profile *profile_at(int i)
{
    return i >= 0 && i < N_PROFILES ? &profiles[i] : NULL;
}

const Profile *profile_find(const char *name, Error *err)
{
    Buffer known;
    buffer_init(&known, 512);
    for (int i = 0; i < N_PROFILES; i++) {
        if (!strcmp(profiles[i].name, name)) {
            buffer_release(&known);
            return &profiles[i];
        }
        buffer_printf(&known, "%s%s", i ? ", " : "", profiles[i].name);
    }
    error_set(err, ERROR_UNKNOWN_NAME, "no simulator profile \"%s\" (known: %s)", name, known.data);
    buffer_release(&known);
    return NULL;
}
