/* The timed workloads of a task, one after another: the steps from the time on run for each, and the
 * verdict's numbers are the weighted geometric means of what they find. A task with one has no rows. */
#ifndef EVAL_JUDGE_WORKLOADS_H
#define EVAL_JUDGE_WORKLOADS_H

#include "eval/judge/judgement.h"

/* A step, before the candidate's code is seen at a timed size: the baseline runs at the module's own sizes.
 * Where it fails there, or had no room, the device times shortened sizes for all candidates of the task. */
int step_sizes(Judgement *j);

/* All pairs of the task, of which the first is at hand; nothing was found yet. */
void workloads_begin(Judgement *j);
/* Pair i is at hand. */
void workloads_take(Judgement *j, int i);
/* Keep what was found for pair i as a row. */
void workloads_note(Judgement *j, int i);
/* The means of all rows. The first pair is at hand, with its samples and counters. */
void workloads_mean(Judgement *j);

#endif
