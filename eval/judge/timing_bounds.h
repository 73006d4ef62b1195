/* What predicted and measured timings share: the samples as pairs, a check of their values, and the
 * times that the device's bounds allow. */
#ifndef EVAL_JUDGE_TIMING_BOUNDS_H
#define EVAL_JUDGE_TIMING_BOUNDS_H

#include "eval/device/device.h"
#include "eval/judge/statistics.h"
#include "tasks/task.h"

/* The samples of t, borrowed from it. */
Pairs timing_pairs(const DeviceTiming *t);

/* Returns 0 when there is a sample and every time is positive and finite; else the device is at
 * fault, and *err says so. paired: the baseline's samples are there, too. */
int timing_makes_sense(const DeviceTiming *t, int paired, Error *err);

/* *us: the least time in which the workload's bytes and flops can be done at the device's bounds
 * (DeviceInfo.dram_bytes_per_s, flops_per_s). A shorter time shows a cheat. The outputs may stay in
 * L2 and need not reach DRAM; with CLOCK_WARM the inputs may be there before. */
int timing_floor_us(const Task *t, const Workload *w, const DeviceInfo *d, ClockMode mode,
                    double *us, Error *err);

/* *us: the time of the workload's bytes and flops at the ceilings measured on this device, or at
 * its bounds without a measurement. *by_flops (may be NULL): 1 when arithmetic takes longer than
 * the bytes. */
int timing_light_us(const Task *t, const Workload *w, const DeviceInfo *d, double *us,
                    int *by_flops, Error *err);

/* A fault when the time of the run, which is predicted, is above the limit at which a device with a clock
 * would stop it. library: the run has op lines. */
int timing_within_limit(const DeviceTiming *t, int library, Fault *f);

#endif
