/* Which branch of a plan (`//@ when`) is taken at the sizes of a workload. */
#ifndef EVAL_CANDIDATE_PLAN_BRANCHES_H
#define EVAL_CANDIDATE_PLAN_BRANCHES_H

#include "eval/candidate/plan.h"
#include "tasks/task.h"

/* 1: the branch of a step is taken, or the step is in none; 0: it is not taken; -1: the condition has a
 * mistake, and the sentence begins with "line N: ". */
int plan_takes(const Plan *p, const Task *t, const Workload *w, const PlanStep *s, Error *err);

#endif
