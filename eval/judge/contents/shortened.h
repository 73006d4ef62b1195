/* The timed workload made short: all sizes but the task's axis `turns` stay, so that a simulator can run
 * every block of every launch there. It is for plans whose sampled blocks cannot be compared. */
#ifndef EVAL_JUDGE_CONTENTS_SHORTENED_H
#define EVAL_JUDGE_CONTENTS_SHORTENED_H

#include "tasks/task.h"

/* Has the task an axis `turns` that is the first dimension of some tensors, and in no other one? */
int shortened_has_axis(const Task *t);

/* How many positions along the axis a short workload has: chosen by the seed from those that cost as
 * much as a complete run may. They keep to the task's constraints and have a factor 2^i of the timed
 * length, which tiles may rely on. 0: none, since the task has no such axis or one position costs too
 * much. */
int64_t shortened_positions(const Task *t, const Workload *timed, uint64_t seed);

/* Makes *out the workload of so many positions. Its tolerance is the timed one's, by share. The caller
 * frees out->atol. */
int shortened_make(const Task *t, const Workload *timed, int64_t positions, Workload *out,
                   Error *err);

/* By what a tolerance of `all` elements is multiplied for n of them: the largest of fewer rounding errors
 * is smaller, as that of normal numbers is. Never below SHARE_LEAST. */
#define SHARE_LEAST 0.7
double shortened_share(double n, double all);

#endif
