/* A predicted time, and what physics allows. Devices with a clock: eval/judge/paired_timing.h. */
#ifndef EVAL_JUDGE_PREDICTED_TIMING_H
#define EVAL_JUDGE_PREDICTED_TIMING_H

#include "eval/judge/checks.h"
#include "eval/judge/statistics.h"

/* One run on a device that predicts: the same time on every run, so the caller keeps the
 * baseline's. The outputs are compared after it. Fills candidate_us[0] and the counters. */
int timing_predict(Loaded *l, Cases *cases, const Workload *w, uint64_t seed, DeviceTiming *out,
                   ChecksPassed *passed, Finding *f, Error *err);

/* A win is right on what it has not seen (checks_unseen), too. */
int timing_unseen(Loaded *l, Cases *cases, const Workload *w, uint64_t seed, ChecksPassed *passed,
                  Finding *f, Error *err);

/* The samples, borrowed. */
Pairs timing_pairs(const DeviceTiming *t);

/* Every time positive and finite; else the device is at fault. */
int timing_makes_sense(const DeviceTiming *t, int paired, Error *err);

/* A time below this was not honestly come by: at the bounds of the device, and as much of the
 * output as its L2 holds still lying there; when the caches were warm, as much of the input as it
 * holds lay there before. */
int timing_floor_us(const Task *t, const Workload *w, const DeviceInfo *d, ClockMode mode,
                    double *us, Error *err);

/* The time that the bytes and flops of the workload take at the ceilings measured on this device,
 * or at its bounds; *by_flops (may be NULL): arithmetic is the ceiling, else bytes. */
int timing_light_us(const Task *t, const Workload *w, const DeviceInfo *d, double *us,
                    int *by_flops, Error *err);

#endif
