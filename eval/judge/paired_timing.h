/* Timing on a device with a clock: pairs of one baseline run and one candidate run, in random order, on the
 * same buffers. There are four sets of buffers, two of large ones or one of very large ones, since the
 * address of a buffer changes its speed (1% between equal buffers of 64 MiB on an H200). Inputs are new in
 * every pair, outputs are poisoned before every run, and the candidate's are compared after every run. Pairs
 * are taken until the interval of their ratio is narrow. What is hopelessly slow in the first pair is timed
 * no further. The device's timing lock is held for what is timed, not for what prepares or checks.
 *
 * Functions return 0, 1 or -1 as in eval/device/fault.h. */
#ifndef EVAL_JUDGE_PAIRED_TIMING_H
#define EVAL_JUDGE_PAIRED_TIMING_H

#include "eval/judge/judgement.h"
#include "eval/judge/paired_interval.h"

/* The step: loads the code again, times it, and scores it. */
int step_time(Judgement *j);

/* Has the device room for a timing, with the baseline in the candidate's place? Returns 0, or -1 where it has
 * not. j->baseline is ready. */
int paired_rehearse(Judgement *j);

/* The samples alone, in verdict.timing, with the telemetry before and after. j->baseline is ready. */
int paired_measure(Judgement *j, const ClockOptions *opt);

/* Check a candidate that is faster than its baseline on the inputs of checks_unseen, each once. All
 * outputs must be right, and on one of the inputs the ratio must be nearly that of the verdict: a
 * candidate that keeps results from earlier runs fails this. Then time it again on contents of a
 * second seed; the lower interval counts. */
int paired_unseen(Judgement *j);

#endif
