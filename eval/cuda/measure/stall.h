/* The periodic stall of a GPU's memory: at a fixed period it serves no request for about a
 * microsecond. On an H200 the period is 100.15 us, and a kernel of 33 us that meets a stall takes
 * 1.4 us longer (docs/gpu-verdict.md, "Stall alignment"). Launches that are
 * compared begin at the same phase of the period, so that both meet a stall or neither does. */
#ifndef EVAL_CUDA_MEASURE_STALL_H
#define EVAL_CUDA_MEASURE_STALL_H

#include <stdint.h>

enum { STALL_LOADS = 65536 }; /* loads that are timed, about 25 ms */

/* The period of the stalls in nanoseconds; 0: the long loads are not periodic. done: when each of n
 * dependent loads ended, in nanoseconds. */
uint32_t stall_period(const uint64_t *done, int n);

#endif
