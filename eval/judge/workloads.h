/* The timed workloads of a task, one after another: the steps from the time on run for each, and the
 * verdict's numbers are the weighted geometric means of what they find. A task with one has no rows. */
#ifndef EVAL_JUDGE_WORKLOADS_H
#define EVAL_JUDGE_WORKLOADS_H

#include "eval/judge/judgement.h"

/* All pairs of the task, of which the first is at hand; nothing was found yet. */
void workloads_begin(Judgement *j);
/* Pair i is at hand. */
void workloads_take(Judgement *j, int i);
/* Keep what was found for pair i as a row. */
void workloads_note(Judgement *j, int i);
/* The means of all rows. The first pair is at hand, with its samples and counters. */
void workloads_mean(Judgement *j);

#endif
