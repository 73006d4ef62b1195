/* Whether positions along a task's axis `turns` depend on one another. Rows of a softmax do not; those of a
 * batch norm, or of a tensor that its own norm divides, do, although turned inputs give turned outputs
 * there too. */
#ifndef EVAL_JUDGE_CONTENTS_POSITIONS_H
#define EVAL_JUDGE_CONTENTS_POSITIONS_H

#include "tasks/task.h"

/* Does the reference of some positions alone give what that of all positions gives for them? It is tried once
 * a task, at the cheapest check workload of three positions or more, and kept in *t. 0 also where the
 * reference fails, or no check workload has two positions. t has an axis `turns` that shortened_has_axis
 * accepts. */
int positions_independent(Task *t);

#endif
