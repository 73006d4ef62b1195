/* The GPUs that can be simulated: what the time model reads. Numbers are of NVIDIA's public
 * specifications and programming guide (throughputs and limits by compute capability); latencies
 * and efficiencies, which no specification gives, are rounded from public microbenchmarks and, for
 * Hopper, from our own measurements on an H200 (docs/timemodel.md). */
#ifndef EVAL_SIM_TIME_PROFILE_H
#define EVAL_SIM_TIME_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct {
    const char *name;  /* "h100": what follows "sim:" */
    const char *title; /* "H100 SXM, simulated" */
    const char *arch;  /* "sm_90" */
    int sm_count;
    double clock_hz; /* boost */

    /* residency */
    int threads_per_block, threads_per_sm, warps_per_sm, blocks_per_sm;
    int registers_per_sm;      /* 32-bit */
    int register_unit;         /* a warp's registers are rounded up to this */
    uint32_t shared_per_sm;    /* bytes */
    uint32_t shared_per_block; /* bytes, with opt-in */
    uint32_t shared_reserved;  /* bytes of every resident block, the system's */
    uint32_t shared_unit;      /* bytes a block's shared memory is rounded up to */

    /* throughput of one SM in threads (lanes) per clock */
    int fp32_lanes, int_lanes, fp16_lanes, fp64_lanes, sfu_lanes, lsu_lanes, shuffle_lanes;
    int int_shares_fp32; /* one half of the fp32 lanes is the integer unit too */
    double tensor_flops; /* fp16 with fp32 sums, dense, per clock and SM */

    /* memory */
    double l1_bytes;         /* per clock and SM: L1 and shared memory are one array */
    double l1_global_cycles; /* of one wavefront of a global request, where shared memory takes 1 */
    double l2_bytes;         /* per clock and SM: the port to L2 */
    double l2_bytes_per_s;   /* of the whole GPU */
    double dram_bytes_per_s; /* of the whole GPU, as specified */
    double dram_efficiency;  /* share of it that a copy reaches */
    uint64_t memory_bytes, l2_size;

    /* latency */
    double l1_cycles, l2_cycles, dram_cycles; /* of a load, by where it is found */
    double barrier_cycles,
        barrier_warp_cycles; /* of __syncthreads: once, and for each warp of the block */
    double block_cycles,
        block_warp_cycles; /* of a block's start and end: once, and for each of its warps */
    double block_interval; /* cycles between two block starts, one after another on the whole GPU */
    double atomic_cycles;  /* of the whole GPU: one more lane, when addresses are spread */
    double atomic_hot_cycles;    /* of the whole GPU: one more lane on one and the same sector */
    double shared_atomic_cycles; /* of one SM: one more lane on an address */
    double launch_s;             /* of one kernel alone, start to end, when it does nothing */
    double gap_s; /* between a kernel and the next that depends on it, besides their own time */
} Profile;

const Profile *profile_find(const char *name,
                            Error *err); /* NULL: a sentence that lists what there is */
const Profile *profile_at(int i);        /* NULL after the last */

#endif
