/* The stall of a GPU's memory: again and again, at the same distance in time, it does nothing for a
 * microsecond, and whoever needs it waits. On an H200 that is every 100.15 us and costs a kernel of
 * 33 us that happens to run then 1.4 us (docs/evaluator.md, "In step with the memory"). Launches
 * that are compared begin at the same time after a stall: both meet the next one, or neither. */
#ifndef EVAL_CUDA_MEASURE_STALL_H
#define EVAL_CUDA_MEASURE_STALL_H

#include <stdint.h>

enum { STALL_LOADS = 65536 }; /* what is looked at: some 25 ms */

/* When each of n loads from memory, one after another, was done, in nanoseconds. The time between
 * stalls, in nanoseconds; 0: those that took long do not come at one distance. */
uint32_t stall_period(const uint64_t *done, int n);

#endif
