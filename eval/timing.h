/* Time a candidate on the workload that fills the device, and look at what it left behind. */
#ifndef EVAL_TIMING_H
#define EVAL_TIMING_H

#include "eval/checks.h"

/* baseline NULL: only the candidate (a predicted time is the same on every run, so the caller keeps
 * the baseline's). Outputs of the candidate are compared after the last launch. */
int timing_measure(Loaded *baseline, Loaded *candidate, Cases *cases, const Workload *w, uint64_t seed, double budget_s,
                   DeviceTiming *out, ChecksPassed *passed, Finding *f, Error *err);

/* Least time that the bytes and flops of the workload take on this device. */
int timing_light_us(const Task *t, const Workload *w, const DeviceInfo *d, double *us, Error *err);

#endif
