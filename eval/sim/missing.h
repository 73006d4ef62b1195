/* Work that the launches of a plan leave out at the timed size, compared with what they did at the small one.
 * A source could leave out what no comparison of outputs sees, such as most terms of a sum that is
 * only estimated. */
#ifndef EVAL_SIM_MISSING_H
#define EVAL_SIM_MISSING_H

#include "eval/device/device.h"
#include "eval/sim/machine/counts.h"

/* The last of the n small launches that has the same kernel, or the same op line, whose kernels depend on
 * the sizes: that with the index `at` where it is one. NULL: there is none. */
const SimCounts *missing_find(const SimCounts *small, int n, const DeviceLaunch *l, int at);

/* How many times more than they do would the own launches of a plan do together, had their work grown from
 * the small size on as the task's (s). 1: they do enough. now: by launch. */
double missing_work(const SimCounts *small, int n_small, const SimCounts *now,
                    const DeviceLaunch *launches, int n, const DeviceSample *s);

/* Bytes that a launch of the plan's own leaves out at the timed size, where every tensor is larger. It counts
 * if it has a quarter or more of all bytes at the small size. */
double missing_bytes(const SimCounts *small, int n_small, const SimCounts *now,
                     const DeviceLaunch *l, int at, const DeviceSample *s);

#endif
