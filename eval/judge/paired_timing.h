/* Timing on a device with a clock: pairs of one baseline run and one candidate run, in random
 * order, on the same buffers. There are four sets of buffers, or two of large ones, since the address
 * of a buffer changes its speed (1% between equal buffers of 64 MiB on an H200). Inputs are new in
 * every pair, outputs are poisoned before every run, and the candidate's are compared after every
 * run. Pairs are taken until the interval of their ratio is narrow. What is hopelessly slow in the first
 * pair is timed no further. The device's timing lock is held throughout.
 *
 * Functions return 0, 1 or -1 as in eval/device/fault.h. */
#ifndef EVAL_JUDGE_PAIRED_TIMING_H
#define EVAL_JUDGE_PAIRED_TIMING_H

#include "eval/judge/judgement.h"
#include "eval/judge/statistics.h"

/* Every launch of one context takes longer than in another by a constant offset, which the samples
 * of one verdict cannot show. This is half of its 95% interval, in us. On an H200 the offset's
 * standard deviation over processes was 0.02 to 0.11 us. */
#define PAIRED_CONTEXT_US 0.2
/* Half of the 95% interval that buffers and code at other places give, as a share of the ratio: on an
 * H100 the standard deviation over processes was 0.1 to 0.3% (docs/measurements/evaluator.md,
 * "Features"). */
#define PAIRED_PLACE_SHARE 0.004

/* The step: loads the code again, times it, and scores it. */
int step_time(Judgement *j);

/* Has the device room for a timing, with the baseline in the candidate's place? Returns 0, or -1 where it has
 * not. j->baseline is ready. */
int paired_rehearse(Judgement *j);

/* The samples alone, in verdict.timing, with the telemetry before and after. j->baseline is ready. */
int paired_measure(Judgement *j, const ClockOptions *opt);

/* Check a candidate that is faster than its baseline on the inputs of checks_unseen, each once. All
 * outputs must be right, and on one of the inputs the ratio must be nearly that of the verdict: a
 * candidate that keeps results from earlier runs fails this. Then time it again on contents of a
 * second seed; the lower interval counts. */
int paired_unseen(Judgement *j);

/* Are the samples so far enough? They are from 24 pairs on, from 6 of runs that take over a millisecond, and
 * from 4 where the candidate is surely slower, when the interval is as narrow as the case asks. *look_at, 0
 * at first: how many there will be at the next look. */
int paired_narrow(const DeviceTiming *t, uint64_t seed, double *look_at);

/* The largest ratio that one run of each side leaves possible. launches: their numbers are taken
 * from it. */
double paired_fastest(const DeviceTiming *launches, double baseline_us, double candidate_us);

/* The ratio of the samples with its 95% interval, symmetric around the ratio. The half width is
 * the resampled interval's, but not less than the width at which sampling stops: with few samples
 * a narrower one is chance. The shares of contexts and places are added in quadrature. */
void paired_ratio(const DeviceTiming *t, uint64_t seed, Interval *out);

#endif
