/* The ratio of pairs of runs with its interval, and whether more pairs are needed. */
#ifndef EVAL_JUDGE_PAIRED_INTERVAL_H
#define EVAL_JUDGE_PAIRED_INTERVAL_H

#include "eval/device/device.h"
#include "eval/judge/statistics.h"

/* Every launch of one context takes longer than in another by a constant offset, which the samples
 * of one verdict cannot show. This is half of its 95% interval, in us. On an H200 the offset's
 * standard deviation over processes was 0.02 to 0.11 us. */
#define PAIRED_CONTEXT_US 0.2
/* Half of the 95% interval that buffers and code at other places give, as a share of the ratio: on an
 * H100 the standard deviation over processes was 0.1 to 0.3% (docs/measurements/evaluator.md,
 * "Features"). */
#define PAIRED_PLACE_SHARE 0.004
/* The ratios of runs as long as this differ by about 0.1%: fewer of them are as good. */
#define PAIRED_LONG_US 1000

enum { PAIRED_ORDERS = 4 }; /* pairs of a block of orders; the interval is looked at after each */

/* Are the samples so far enough? They are from 24 pairs on, from 4 of runs that take over a millisecond or
 * where the candidate is surely slower, and from 2 where it is both and far below, when the interval is as
 * narrow as the case asks.
 * *look_at, 0 at first: how many there will be at the next look. */
int paired_narrow(const DeviceTiming *t, uint64_t seed, double *look_at);

/* A ratio above 1 that a kernel equal to its baseline might seem to have. */
int paired_small_win(double ratio);

/* The largest ratio that one run of each side leaves possible. launches: their numbers are taken
 * from it. */
double paired_fastest(const DeviceTiming *launches, double baseline_us, double candidate_us);

/* The ratio of the samples with its 95% interval, symmetric around the ratio. The half width is
 * the resampled interval's, but not less than the width at which sampling stops: with few samples
 * a narrower one is chance. The shares of contexts and places are added in quadrature. */
void paired_ratio(const DeviceTiming *t, uint64_t seed, Interval *out);

/* Do these samples, of a timing behind another, leave its score as it is? known: the low end of that
 * interval, of a ratio that is not about 1: else they never do, since of many candidates that equal their
 * baseline some seem to win by chance. Two pairs tell it of long runs, two blocks of orders of others: a
 * ratio below `known` is timed until its own interval is narrow. */
int paired_confirms(const DeviceTiming *t, double known);

#endif
