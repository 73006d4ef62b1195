/* Plans that choose a kernel by size, as host code does: with a `when`, or a `for` whose range is empty at
 * some sizes. Each launch line runs at sizes that a check can have, and those of the timed size at the small
 * one, too. */
#ifndef EVAL_JUDGE_BRANCHES_H
#define EVAL_JUDGE_BRANCHES_H

#include "eval/judge/judgement.h"

/* Where the task's small workload does not launch every kernel that the timed one does, set j->small to drawn
 * sizes that do. Returns 0, or 1 with PLAN_ERROR: no such sizes are small enough. */
int branches_small(Judgement *j);

/* Is a step with a `for`, or in a branch, launched at one of the task's check workloads? 1 as well for
 * another. */
int branches_checked(const Judgement *j, const PlanStep *s);

/* Sizes at which a step launches that no check workload of the task launches. *out is NULL for another step,
 * and for one that has the condition of the step before. Returns 0, or 1 with PLAN_ERROR: none are small
 * enough. */
int branches_sizes(Judgement *j, const PlanStep *s, const Workload **out);

/* Sizes at which a step of a branch launches that the largest check workload does not launch, wide along each
 * axis where there are such sizes, and longest along `axis`; -1: along none. NULL: it is another step. */
const Workload *branches_wide(Judgement *j, const PlanStep *s, int axis);

#endif
