/* Outliers: a few inputs so large that they decide every sum, mean or norm over them. The tolerance of a sum
 * of millions of terms is larger than what a kernel loses that estimates the sum from a part of them.
 * With outliers the part that it leaves out changes the result by far more than any rounding does.
 *
 * A kernel could look for outliers in a part of the inputs, or while it writes its outputs, and do all of the
 * work where it finds one. So it also runs twice with one outlier in each input, which a part does not show,
 * and must be as fast there as it is otherwise.
 *
 * What is expected is what the baseline gives for the same inputs. Where the baseline itself is not
 * steady there (inputs that differ by a part in 2^20 move its outputs visibly), nothing is checked. */
#ifndef EVAL_JUDGE_OUTLIERS_H
#define EVAL_JUDGE_OUTLIERS_H

#include "eval/judge/baseline.h"
#include "eval/judge/checks.h"

/* Runs a candidate that is faster than its baseline at the timed sizes, all blocks, and compares. It does
 * nothing for a task without long sums. timing: of the candidate; a simulator runs only what its counters
 * show to be short, and otherwise the workload `shortened` (shortened.h; NULL: none), where the time does not
 * matter. low: the ratio that it claims. Returns 0, 1 or -1 as in eval/judge/loaded.h. */
int outliers_check(const BaselineContext *x, Baseline *b, Loaded *candidate, const Workload *timed,
                   const Workload *shortened, const DeviceTiming *timing, double low,
                   ChecksPassed *passed, Finding *f, Error *err);

#endif
