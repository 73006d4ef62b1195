/* Timing on a device with a clock: baseline and candidate in random order, each on the same two
 * sets of buffers (on an H200 two equal 64 MiB buffers differ by 1% in speed by their address
 * alone), inputs new each time, outputs undefined before every run and the candidate's compared
 * after every run, until the interval of the ratio is narrow. The device's timing lock is held
 * throughout. */
#ifndef EVAL_JUDGE_PAIRED_TIMING_H
#define EVAL_JUDGE_PAIRED_TIMING_H

#include "eval/judge/checks.h"
#include "eval/judge/statistics.h"

/* Half of a 95% interval of what each launch in one context takes longer than in another, whatever
 * the kernel, for as long as both live: no samples of one verdict show it. On an H200 its standard
 * deviation over processes was 0.02 to 0.11 us (docs/evaluator.md, "Contexts"). */
#define CLOCKED_CONTEXT_US 0.2

typedef struct {
    ClockMode mode;
    double budget_s; /* of the samples, at most */
    uint64_t seed;   /* of contents and orders */
    int profile;     /* the counters of one run of each side too, where the device has them */
    double timed_at; /* when the last timing on this device ended, of clock_seconds; 0: none */
} ClockedOptions;

/* 0 with *out filled: n samples of both sides, telemetry before and after. 1: the candidate's
 * fault. -1: the evaluator's. */
int clocked_measure(Loaded *baseline, Loaded *candidate, Cases *cases, const Workload *w,
                    const ClockedOptions *opt, DeviceTiming *out, ChecksPassed *passed, Finding *f,
                    Error *err);

/* A win, of which the ratio is at least `low`, once on each of the contents that the candidate has
 * not seen (checks_unseen): right, and on one of them at least as fast, or nearly so; whoever
 * remembers results finds none. As clocked_measure. */
int clocked_unseen(Loaded *baseline, Loaded *candidate, Cases *cases, const Workload *w,
                   const ClockedOptions *opt, double low, ChecksPassed *passed, Finding *f,
                   Error *err);

/* The ratio of such samples with its 95% interval, the same to either side: the resampled one's
 * width, or what the samples were taken for where chance made it less (the score would else tell
 * the width's luck, of few samples a large one), widened by what the contexts leave unknown. */
void clocked_ratio(const DeviceTiming *t, uint64_t seed, Interval *out);

#endif
