/* The error of outputs: the largest difference of an element from the reference in double precision. A
 * candidate's stands beside that of its baseline, which is what eager PyTorch launches, on the same inputs,
 * and beside the budget (base/precision.h) where the task or the run has one.
 *
 * A budget is judged there: on a simulator at the sizes that it runs whole, on a GPU at the timed ones. One
 * that is looser than the tolerance loosens the checks of drawn contents, at most ERRORS_LOOSEST-fold. All
 * other contents, which show work that is left out, keep their tolerances. */
#ifndef EVAL_JUDGE_ERRORS_H
#define EVAL_JUDGE_ERRORS_H

#include "eval/judge/judgement.h"

#define ERRORS_LOOSEST 4.0

/* Before any check: where a budget is given, measure the baseline's errors and loosen the task's cases. */
int step_budget(Judgement *j);

/* After the time: the candidate's errors in the verdict, and WRONG_RESULT where they exceed the budget. */
int step_error(Judgement *j);

#endif
