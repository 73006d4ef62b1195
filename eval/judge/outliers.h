/* Outliers: a few inputs so large that they decide every sum, mean or norm over them. The tolerance
 * of a sum of millions of terms is larger than what a kernel loses that estimates the sum from a
 * part of them. With outliers the part that it leaves out changes the result by far more than any
 * rounding does.
 *
 * A kernel could look for outliers in a part of the inputs, or while it writes its outputs, and
 * do all of the work where it finds one. So it also runs twice with one outlier in each input,
 * which a part does not show, and must be as fast there as it is otherwise.
 *
 * The baseline's outputs for the same inputs are the expected ones. The baseline is not steady where
 * inputs that differ by a part in 2^20 move its outputs visibly; nothing is checked there. */
#ifndef EVAL_JUDGE_OUTLIERS_H
#define EVAL_JUDGE_OUTLIERS_H

#include "eval/judge/judgement.h"

/* The step: runs a candidate that is faster than its baseline at the timed sizes, all blocks, and
 * compares. It does nothing for a task without long sums. A simulator runs only what the counters
 * of both sides show to be short, and otherwise predicted_fitting, where the time does not matter. */
int step_outliers(Judgement *j);

#endif
