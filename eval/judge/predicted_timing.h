/* Timing on a device that predicts times (a simulator). Functions return 0, 1 or -1 as in
 * eval/device/fault.h. For devices with a clock: eval/judge/paired_timing.h. */
#ifndef EVAL_JUDGE_PREDICTED_TIMING_H
#define EVAL_JUDGE_PREDICTED_TIMING_H

#include "eval/judge/judgement.h"

/* The step: loads the code again, predicts the time of the timed workload beside the baseline's,
 * and scores it. */
int step_predict(Judgement *j);

/* The time alone, in verdict.timing. It launches the small workload whole, compares its outputs,
 * and then takes the time and the counters of the timed workload from a sample of its blocks. The
 * outputs of these blocks are compared where timed_compare can. Where it cannot, the plan runs
 * completely on predicted_shortened, and is compared there, unless that takes too long. The
 * prediction is the same in every run. */
int predicted_measure(Judgement *j);

/* Runs the small workload and a sample of the blocks of the timed one with all checks, and compares nothing.
 * *scaled: launches that could not be sampled. */
int predicted_sample(Judgement *j, int *scaled);

/* Check a candidate that is faster than its baseline on the inputs of checks_unseen, and predict its
 * time again on other contents of the timed workload. The longer time counts. */
int predicted_unseen(Judgement *j);

/* Reset an open run and launch it under the limits of a predicted one. out: its time and counters;
 * NULL: not wanted. */
int predicted_run(Run *r, DeviceTiming *out, Fault *f);

/* Reset an open run, launch and compare. *too_long: it has not ended, and nothing is compared. */
int predicted_attempt(Run *r, int *too_long, Fault *f);

/* The workload that predicted_measure may run completely; NULL: it runs none. */
const Workload *predicted_shortened(Judgement *j);
/* As above, after predicted_measure or predicted_unseen. NULL also where their sample tells that it
 * takes too long. */
const Workload *predicted_fitting(Judgement *j);

#endif
