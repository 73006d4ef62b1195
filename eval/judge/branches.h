/* Plans that choose a kernel by size, as host code does: a `for` whose range is empty at some sizes. Each
 * launch line runs at sizes that a check can have, and those of the timed size at the small one, too. */
#ifndef EVAL_JUDGE_BRANCHES_H
#define EVAL_JUDGE_BRANCHES_H

#include "eval/judge/judgement.h"

/* Where the task's small workload does not launch every kernel that the timed one does, set j->small to drawn
 * sizes that do. Returns 0, or 1 with PLAN_ERROR: no such sizes are small enough. */
int branches_small(Judgement *j);

/* Is a step with a `for` launched at one of the task's check workloads? 1 as well for one without. */
int branches_checked(const Judgement *j, const PlanStep *s);

/* Sizes at which a step launches that no check workload of the task launches. *out is NULL for another
 * step. Returns 0, or 1 with PLAN_ERROR: none are small enough. */
int branches_sizes(Judgement *j, const PlanStep *s, const Workload **out);

#endif
