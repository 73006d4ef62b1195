/* The number of blocks of a kernel that are resident on one SM, and what limits it. */
#ifndef EVAL_SIM_TIME_OCCUPANCY_H
#define EVAL_SIM_TIME_OCCUPANCY_H

#include "eval/sim/machine/counts.h"
#include "eval/sim/time/profile.h"

typedef struct {
    int warps_per_block, blocks_per_sm;
    double occupancy;  /* resident warps over the warps that an SM can hold */
    const char *limit; /* "threads" "blocks" "registers" "shared memory" */
} Occupancy;

/* registers: per thread. shared_bytes: per block. Returns -1 with an Error when one block does not
 * fit: the driver would refuse the launch. */
int occupancy_of(const Profile *p, uint64_t threads_per_block, int registers, uint64_t shared_bytes,
                 Occupancy *out, Error *err);

/* That of a launch that has run. */
int occupancy_of_counts(const Profile *p, const SimCounts *c, Occupancy *out, Error *err);

/* The same for a real GPU of an architecture such as "sm_90", whose limits are those of its
 * profiles. Returns -1 when no profile has the architecture, or the block does not fit. */
int occupancy_of_arch(const char *arch, uint64_t threads_per_block, int registers,
                      uint64_t shared_bytes, Occupancy *out);

#endif
