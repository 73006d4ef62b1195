/* Limits of the elements of outputs of half types. The rounding of a result to such a type is the largest
 * error of many honest kernels, and is as large as the element itself makes it: one limit for all elements,
 * which the largest of them set, hides what is wrong with small ones.
 *
 * An element may differ by half a unit in its last place, a quarter of that more, and by several times the
 * errors that honest variants have there before they round the result: their largest one at the element,
 * with each operator's stored result alone and all together, and what the elements of its row have, which
 * are the last dimension. Besides, the errors of all elements together may be little larger than those of
 * the variant that rounds most, which is eager PyTorch's: one more rounding to a half type makes them a third
 * larger or more.
 *
 * Outputs in float32 have a limit for all elements together where the tolerance of one is above a hundredth
 * of their spread: what a few elements that cancel need hides what is wrong with all. An error counts in
 * units of the middle element's largest one by honest ways, eight at most.
 *
 * Where a task's precision lets eager PyTorch use TF32, outputs in float32 have a limit for all elements
 * together: three times the error that rounding to the nearest number of TF32 makes of the same inputs.
 * Factors in bfloat16 err eight times as much, factors in TF32 that are rounded at other places once to
 * twice. Factors that are cut off to TF32 make all results smaller, which alone is more than that, through
 * any number of layers: the part of the errors that is a multiple of theirs does not count. */
#ifndef TASKS_DERIVE_ELEMENT_LIMITS_H
#define TASKS_DERIVE_ELEMENT_LIMITS_H

#include "tasks/task.h"

/* Of each output, for the case's inputs and the outputs that the reference has of them: out[i] is NULL where
 * there is none; else the caller frees it with
 * element_limits_free. */
int element_limits(const TaskCase *c, const double *const *in, const double *const *want,
                   ElementLimits **out, Error *err);

/* The same of outputs in float32, whose results the ways round. 1: that costs too much, and out is NULL. */
int element_limits_float(const TaskCase *c, const double *const *in, const double *const *want,
                         ElementLimits **out, Error *err);
void element_limits_free(ElementLimits *e); /* NULL is allowed */

#endif
