/* The time of a launch on a GPU of a profile, from the launch's counters: first-order and
 * deterministic.
 *
 * Blocks run in waves of as many as are resident (occupancy.h). The time of a wave is
 *
 *     the larger of sqrt(M^2 + L^2) and F + sqrt(P^2 + (L - F)^2)
 *
 * M and P: the time of the busiest resource T, of memory and of the SM's pipes.
 * F: the part of L until the first loads of a block have arrived.
 * T: the time of the busiest resource: issue slots, an arithmetic pipe, the load-store unit, L1 and
 *    shared wavefronts, the SM's port to L2, L2, DRAM, atomics, or block starts.
 * L: the latency of one block alone: dependent arithmetic, loads at the latency of the place where
 *    they hit, and barriers. Little's law follows: with few resident warps few bytes are in flight,
 *    and the latency bounds the wave.
 *
 * The root of squares is what an H200 shows between the two limits (docs/timemodel.md): near T = L
 * queues form, and neither hides the other completely. Where pipes bound a wave that others run before,
 * these are third powers. A launch is never shorter than its heaviest block alone on an SM, or than an SM's
 * share of the blocks as heavy as that, by instructions and by the memory of the SM; nor than the time for
 * which schedulers are busy that wait for one another. */
#ifndef EVAL_SIM_TIME_TIME_MODEL_H
#define EVAL_SIM_TIME_TIME_MODEL_H

#include "eval/device/device.h"
#include "eval/sim/machine/counts.h"
#include "eval/sim/machine/exec.h"
#include "eval/sim/time/occupancy.h"
#include "eval/sim/time/profile.h"

/* The resources that can bound T. */
#define TIME_RESOURCES(X) \
    X(ISSUE, "issue")     \
    X(FP32, "fp32")       \
    X(INT, "int")         \
    X(FP16, "fp16")       \
    X(FP64, "fp64")       \
    X(SFU, "sfu")         \
    X(TENSOR, "tensor")   \
    X(SHUFFLE, "shuffle") \
    X(LSU, "lsu")         \
    X(SYNC, "sync")       \
    X(L1, "l1")           \
    X(L2_PORT, "l2_port") \
    X(L2, "l2")           \
    X(DRAM, "dram")       \
    X(ATOMIC, "atomic")   \
    X(BLOCK_START, "block_start")

typedef enum {
#define X(id, name) TIME_##id,
    TIME_RESOURCES(X)
#undef X
        TIME_RESOURCE_COUNT
} TimeResource;

typedef struct {
    double seconds;                         /* of the kernel itself, without launch overhead */
    double resource_s[TIME_RESOURCE_COUNT]; /* of each resource alone */
    double latency_s;                       /* waves times L */
    double waves;                           /* of resident blocks; the last may be partial */
    const char *bound; /* the longest: a resource's name, "latency" or "slowest block" */
    Occupancy occupancy;
} LaunchTime;

/* What the simulator needs of it while a launch runs. p stays where it is. */
void timemodel_rates(const Profile *p, ExecRates *rates);

/* Returns -1 when the launch does not fit on the device. */
int timemodel_launch(const Profile *p, const SimCounts *c, LaunchTime *out, Error *err);

/* The parts of the latency of an average block alone, in cycles: dependent instructions, loads from
 * global and local memory with spills, and barriers. */
typedef struct {
    double chain, loads, barriers;
} LatencyParts;
void timemodel_latency(const Profile *p, const SimCounts *c, LatencyParts *out);

/* Seconds of a sequence of dependent launches: their times, one launch overhead, and a gap between
 * each two. */
double timemodel_sequence(const Profile *p, const LaunchTime *times, int n);

/* Fills in the named counters of a sequence of n launches: sums, or what the name says. Returns
 * their number, at most DEVICE_MAX_COUNTERS. */
int timemodel_counters(const Profile *p, const SimCounts *counts, const LaunchTime *times, int n,
                       DeviceCounter out[DEVICE_MAX_COUNTERS]);

#endif
