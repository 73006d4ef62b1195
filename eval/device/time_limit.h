/* The time that one timed run of a candidate may take. A device with a clock stops it then; a device that
 * predicts gives the same outcome to a prediction above it. */
#ifndef EVAL_DEVICE_TIME_LIMIT_H
#define EVAL_DEVICE_TIME_LIMIT_H

/* Seconds. A run whose op lines call a library gets TIME_LIMIT_LIBRARY_S more. */
enum { TIME_LIMIT_LIBRARY_S = 10, TIME_LIMIT_FACTOR = 200 };
static const double time_limit_least_s = 0.5, time_limit_most_s = 10;

/* The limit in seconds, TIME_LIMIT_FACTOR times the baseline's time within [least_s, time_limit_most_s];
 * baseline_us 0: it is not known, and the limit is the largest one. */
static inline double time_limit_s(double baseline_us, double least_s)
{
    double s = baseline_us * 1e-6 * TIME_LIMIT_FACTOR;
    return s <= 0 || s > time_limit_most_s ? time_limit_most_s : s < least_s ? least_s : s;
}

#endif
