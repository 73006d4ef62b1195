/* What repeated measurements say: the middle of paired ratios and how sure it is. */
#ifndef EVAL_JUDGE_STATISTICS_H
#define EVAL_JUDGE_STATISTICS_H

#include <stdint.h>

typedef struct {
    double middle, low, high; /* 95% interval; a point when n is 1 */
} Interval;

double statistics_median(const double *v, int n);

/* Times of both sides, all positive; n at least 1. */
typedef struct {
    const double *baseline, *candidate;
    int n;
} Pairs;

/* The mean of the middle half of baseline[i]/candidate[i] with its bootstrap interval (percentile,
 * widened by Student's t where samples are few). Equal seeds give equal intervals. */
void statistics_ratio(const Pairs *p, uint64_t seed, Interval *out);

/* Half of about that interval, without resampling: cheap, to see when to stop. */
double statistics_half_width(const Pairs *p);

/* The median of v with the interval that order statistics give. */
void statistics_median_interval(const double *v, int n, Interval *out);

/* To 3 decimals, never away from 1: 1.2349 -> 1.234, 0.9871 -> 0.988. */
double statistics_towards_one(double v);

#endif
