/* Contents at which the usual faults of operators show: exponentials that overflow, sums of squares that
 * cancel, maxima that start too high, bounds that are never crossed. An input's rows are its first dimension,
 * or the first two where that one is short; each row is one kind of such numbers. */
#ifndef TASKS_REGIMES_H
#define TASKS_REGIMES_H

#include "tasks/task.h"

/* Does an operator of the task have faults that a variant beyond VARIANTS shows? 0 or 1. */
int regimes_has(const Task *t, Variant v);

/* The check workload on which these variants are judged: the one with the most elements of those whose
 * first input has enough rows. NULL: there is none. */
const Workload *regimes_workload(const Task *t);

/* Faults that the variant shows may begin with a second trip of a block over a row. */
int regimes_on_long_rows(const Task *t, Variant v);

/* The elements of a row at w, of the input by which a check is chosen, or of the first output. */
size_t regimes_row(const Task *t, const Workload *w, int of_output);

/* Changes elements [from, from + n) of an input as drawn; x is of its dtype. */
int regimes_change(const TaskCase *c, int input, size_t from, void *x, size_t n, Error *err);

/* By what the largest elements grow, for tolerances that follow from a scale. */
double regimes_scale(Variant v);

#endif
