/* What repeated measurements say: the median of paired ratios and how sure it is. */
#ifndef EVAL_STATISTICS_H
#define EVAL_STATISTICS_H

#include <stdint.h>

typedef struct {
    double median, low, high;   /* 95% bootstrap interval (percentile); a point when n is 1 */
} Interval;

double statistics_median(const double *v, int n);

/* Of baseline[i]/candidate[i], i < n, n >= 1, all times positive. Equal seeds give equal intervals. */
void statistics_ratio(const double *baseline, const double *candidate, int n, uint64_t seed, Interval *out);

/* To 3 decimals, never away from 1: 1.2349 -> 1.234, 0.9871 -> 0.988. */
double statistics_towards_one(double v);

#endif
