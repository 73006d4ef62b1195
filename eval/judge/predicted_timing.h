/* Timing on a device that predicts times (a simulator). Functions return 0, 1 or -1 as in
 * eval/judge/loaded.h. For devices with a clock: eval/judge/paired_timing.h. */
#ifndef EVAL_JUDGE_PREDICTED_TIMING_H
#define EVAL_JUDGE_PREDICTED_TIMING_H

#include "eval/judge/checks.h"

/* Reset an open run and launch it under the limits of a predicted one. out: its time and counters; NULL: not
 * wanted. */
int predicted_run(Run *r, DeviceTiming *out, Finding *f, Error *err);

/* Launch once, predict the time, compare the outputs. Fills out->candidate_us[0] and the counters.
 * The prediction is the same in every run, so the caller keeps the baseline's. */
int predicted_measure(Loaded *l, Cases *cases, const Workload *w, uint64_t seed, DeviceTiming *out,
                      ChecksPassed *passed, Finding *f, Error *err);

/* The workload that predicted_timed may run completely; NULL: it runs none. */
const Workload *predicted_shortened(const Loaded *l, Cases *cases, const Workload *timed,
                                    uint64_t seed);
/* As above, after predicted_timed or predicted_unseen. NULL also where their sample tells that it takes too
 * long. */
const Workload *predicted_fitting(Loaded *l, Cases *cases, const Workload *timed, uint64_t seed);

/* After predicted_measure on the small workload: replaces the time and the counters by those of the
 * timed workload, from a sample of its blocks. The outputs of these blocks are compared where
 * timed_compare can. Where it cannot, the plan runs completely on predicted_shortened, and is compared
 * there, unless that takes too long. */
int predicted_timed(Loaded *l, Cases *cases, const Workload *small, const Workload *timed,
                    uint64_t seed, DeviceTiming *out, ChecksPassed *passed, Finding *f, Error *err);

/* Check a candidate that is faster than its baseline on the inputs of checks_unseen, and predict its
 * time again on other contents of the timed workload. Both are drawn with `seed`. *out is replaced
 * when the second time is longer. */
int predicted_unseen(Loaded *l, Cases *cases, const Workload *small, const Workload *timed,
                     uint64_t seed, DeviceTiming *out, ChecksPassed *passed, Finding *f,
                     Error *err);

#endif
