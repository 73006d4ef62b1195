/* Statistics of repeated timings: medians, and the ratio of paired samples with its 95% interval.
 */
#ifndef EVAL_JUDGE_STATISTICS_H
#define EVAL_JUDGE_STATISTICS_H

#include <stdint.h>

#include "base/random.h"

typedef struct {
    double middle, low, high; /* the 95% interval; a point when n is 1 */
} Interval;

double statistics_median(const double *v, int n);

/* n times of both sides, borrowed, all positive; n is at least 1. */
typedef struct {
    const double *baseline, *candidate;
    int n;
} Pairs;

/* The mean of the middle half (interquartile mean) of baseline[i]/candidate[i], with its bootstrap
 * percentile interval, widened by Student's t for few samples. Equal seeds give equal intervals. */
void statistics_ratio(const Pairs *p, uint64_t seed, Interval *out);

double statistics_midmean(const Pairs *p); /* that mean alone */

/* An estimate of half that interval without resampling, to decide when sampling stops. */
double statistics_half_width(const Pairs *p);

/* Computes n statistics of one resample into out. */
typedef void StatisticsDraw(void *ctx, Random *r, double *out);
/* Fills low and high of n <= 16 intervals with the bootstrap's 2.5% and 97.5% percentiles of those
 * statistics. Equal seeds give equal intervals. */
void statistics_resample(StatisticsDraw *draw, void *ctx, uint64_t seed, int n, Interval *out);
/* Fills low and high of an interval whose middle is given, moved by the bias of the resamples: their
 * mean less the middle. The best of a resample is below the best of all. */
void statistics_centred(StatisticsDraw *draw, void *ctx, uint64_t seed, Interval *in);
/* Widens an interval whose resamples drew from `groups` >= 2 groups, by Student's t over the normal
 * quantile, within what the statistic can be. */
void statistics_widen(Interval *in, int groups, double least, double upper);
/* The upper end of the 95% interval of a rate of which n trials showed none; for all of n, one minus
 * it is the lower end. */
double statistics_none_of(long n);

/* The median of v with its interval by order statistics. */
void statistics_median_interval(const double *v, int n, Interval *out);

/* Rounds to 3 decimals, towards 1: 1.2349 -> 1.234, 0.9871 -> 0.988. */
double statistics_towards_one(double v);

#endif
