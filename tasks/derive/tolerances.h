/* The tolerances of a description's workloads: what honest variants need (honest.h), at their own sizes and,
 * of the timed ones, at sizes whose sums are as long. */
#ifndef TASKS_DERIVE_TOLERANCES_H
#define TASKS_DERIVE_TOLERANCES_H

#include "tasks/derive/task_text.h"

/* Fills rtol, and atol and finite of each workload. deep: sizes with the timed sums. doubted: asks first
 * whether the gate would refuse what is described. Returns 1 where it would. */
int tolerances_measure(const Derivation *v, Description *d, const Sizes *deep, int doubted,
                       Error *err);

/* Fills atol of workloads that are all timed ones, with the rtol of a task that is there: v's. They have at
 * least what its checks have. */
int tolerances_measure_timed(const Derivation *v, const Task *t, Description *d, Error *err);

#endif
