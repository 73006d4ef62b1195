/* The GPUs that can be simulated, as the time model reads them. Throughputs and limits are from
 * NVIDIA's public specifications and programming guide, by compute capability. Latencies and
 * efficiencies, which no specification gives, are rounded from public microbenchmarks and, for
 * Hopper, from measurements on an H200 (docs/timemodel.md). */
#ifndef EVAL_SIM_TIME_PROFILE_H
#define EVAL_SIM_TIME_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct {
    const char *name;  /* "h100" of "sim:h100" */
    const char *title; /* "H100 SXM, simulated" */
    const char *arch;  /* "sm_90" */
    int sm_count;
    double clock_hz; /* boost */

    /* residency: limits of a block and of an SM */
    int threads_per_block, threads_per_sm, warps_per_sm, blocks_per_sm;
    int registers_per_sm;      /* 32-bit */
    int register_unit;         /* a warp's registers are rounded up to this */
    uint32_t shared_per_sm;    /* bytes */
    uint32_t shared_per_block; /* bytes, with opt-in */
    uint32_t shared_reserved;  /* bytes that the system takes in every resident block */
    uint32_t shared_unit;      /* bytes a block's shared memory is rounded up to */

    /* throughput of one SM in threads (lanes) per cycle */
    int fp32_lanes, int_lanes, fp16_lanes, fp64_lanes, sfu_lanes, lsu_lanes, shuffle_lanes;
    int int_shares_fp32; /* half of the fp32 lanes are the integer lanes */
    double tensor_flops; /* fp16 with fp32 accumulators, dense, per cycle and SM */
    double mma_share;    /* of this rate that mma reaches; wgmma reaches all of it */

    /* memory */
    uint32_t l1_size; /* bytes of an SM; L1 and shared memory are one array */
    double l1_bytes;  /* per cycle and SM: a wavefront */
    double l2_bytes;  /* per cycle and SM: the port to L2, for reads */
    /* The same: zeros of a tensor map (an H200, 2026-11-30: zeros_by_map of the tricks takes 703 us). */
    double fill_bytes;
    double far_bytes; /* per cycle and SM: from shared memory of other blocks of a cluster */
    /* Cycles of that port for each line of a store request, and for each of its sectors: full or
     * partial sectors cost the same. */
    double store_line_cycles, store_sector_cycles;
    double single_sector_cycles; /* for a sector of an atomic, or of local memory that is stored */
    double l2_bytes_per_s;       /* of the whole GPU */
    double again_cycles,
        strong_again_cycles, /* for a sector that the block has read past L1 before */
        stored_again_cycles; /* beyond that, where it has also stored to it */
    double lone_sector_cost; /* in sectors: what L2 takes beyond one for half of 64 bytes alone */
    double dram_bytes_per_s; /* of the whole GPU, as specified */
    double dram_efficiency;  /* the share that a copy reaches */
    uint64_t memory_bytes, l2_size;
    double l2_share; /* of L2, for data that all SMs read: where L2 has halves, each keeps a copy */

    /* latency */
    double l1_cycles, l2_cycles, dram_cycles;   /* of a load that hits there */
    double barrier_cycles, barrier_warp_cycles; /* of __syncthreads: once, and per warp */
    /* What an SM takes for a warp's arrival at a barrier, and for its fences. */
    double const_cycles; /* of a further address of a load of constant memory */
    double arrival_cycles, fence_cycles, block_fence_cycles;
    double remote_arrival_cycles;           /* beyond these, at the barrier of a cluster */
    double mbarrier_cycles;                 /* for a warp that goes on behind an mbarrier */
    double block_cycles, block_warp_cycles; /* of a block's start and end: once, and per warp */
    double block_interval;                  /* cycles between two block starts of the whole GPU */
    double atomic_cycles;        /* of the whole GPU: per lane, when addresses are spread */
    double atomic_hot_cycles;    /* of the whole GPU: a turn on the same pair of lines */
    double shared_atomic_cycles; /* of one SM: per lane on the same bank */
    double launch_s;             /* seconds of an empty kernel, start to end */
    double gap_s;                /* seconds between a kernel and the next that depends on it */
    double error_factor; /* 9 in 10 predicted speedups are right within it, by tests/calibration */
} Profile;

/* Returns NULL for an unknown name; the Error lists the known ones. */
const Profile *profile_find(const char *name, Error *err);
const Profile *profile_at(int i); /* NULL after the last */

#endif
