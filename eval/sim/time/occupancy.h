/* How many blocks of a kernel are resident on one SM, and what limits them. */
#ifndef EVAL_SIM_TIME_OCCUPANCY_H
#define EVAL_SIM_TIME_OCCUPANCY_H

#include "eval/sim/time/profile.h"

typedef struct {
    int warps_per_block, blocks_per_sm;
    double occupancy;  /* resident warps over the most that fit */
    const char *limit; /* "threads" "blocks" "registers" "shared memory" */
} Occupancy;

/* -1 with a sentence when one block does not fit: the driver would refuse the launch. */
int occupancy_of(const Profile *p, uint64_t threads_per_block, int registers, uint64_t shared_bytes,
                 Occupancy *out, Error *err);

/* The same for a real GPU of this architecture ("sm_90"), whose limits every profile of it has; -1:
 * no profile has it, or the block does not fit. */
int occupancy_of_arch(const char *arch, uint64_t threads_per_block, int registers,
                      uint64_t shared_bytes, Occupancy *out);

#endif
