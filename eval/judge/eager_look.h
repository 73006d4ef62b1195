/* How far the task's baseline, which computes as eager PyTorch does, is from the reference on the contents of
 * a case. A tolerance is measured on other contents and by models of honest arithmetic: where the baseline
 * itself exceeds it, a candidate may differ about as much.
 *
 * The baseline runs once for each case that a candidate would fail. Of the candidate's elements at most four
 * times as many may differ by more than any number of tolerances as of the baseline's by half of that
 * (outputs of few elements: by a quarter), and its mean square error may be twice the baseline's. */
#ifndef EVAL_JUDGE_EAGER_LOOK_H
#define EVAL_JUDGE_EAGER_LOOK_H

#include "eval/judge/run.h"

typedef enum { EAGER_IF_KNOWN, EAGER_RUN } EagerNeed;

/* 1: the baseline's errors allow those of the output; 0: they do not, or are not known, such as where the
 * machine has no compiler; -1: an Error. d: what exceeds the tolerance. */
int eager_allows(Run *r, int output, const TaskDifference *d, EagerNeed need, Error *err);

/* After a comparison that failed, with the fault in *f: 0: the output is as good as the baseline's, or the
 * run is of a baseline, and plausible; 1: it is not; -1: the evaluator failed. */
int eager_excuses(Run *r, int output, Fault *f);

#endif
