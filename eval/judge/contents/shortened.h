/* The timed workload made short: all sizes but the task's axis `turns` stay, so that a simulator can run
 * every block of every launch there. It is for plans whose sampled blocks cannot be compared. */
#ifndef EVAL_JUDGE_CONTENTS_SHORTENED_H
#define EVAL_JUDGE_CONTENTS_SHORTENED_H

#include "tasks/task.h"

/* Has the task an axis `turns` that is the first dimension of some tensors, and in no other one? */
int shortened_has_axis(const Task *t);

/* The axes that can be made short, one at a time: that of `turns`, or, of a graph without one, the two
 * longest of those that are a dimension of an input that is no parameter. Where outputs are scalars, the
 * longest is made shorter beside the second, so that many rows of few elements can be run. */
enum { SHORTENED_AXES = 2 };
typedef struct {
    const Task *task;
    const Workload *timed;
    int axis;
    int also; /* another axis, made at most SHORTENED_LONG; -1: none */
} Shortening;
enum { SHORTENED_LONG = 4160 };
int shortened_axes(const Task *t, const Workload *timed, Shortening axis[SHORTENED_AXES]);

/* How many positions along the axis a short workload has: chosen by the seed from those that cost as
 * much as a complete run may. They keep to the task's constraints and have a factor 2^i of the timed
 * length, which tiles may rely on. 0: none, since one position costs too much. */
int64_t shortened_positions(const Shortening *s, uint64_t seed);

/* Makes *out the workload of so many positions. Its tolerance is the timed one's, by share; where the
 * outputs are scalars, that of its own sizes. The caller frees out->atol. */
int shortened_make(const Shortening *s, int64_t positions, Workload *out, Error *err);

/* By what a tolerance of `all` elements is multiplied for n of them: the largest of fewer rounding errors
 * is smaller, as that of normal numbers is. Never below SHARE_LEAST. */
#define SHARE_LEAST 0.7
double shortened_share(double n, double all);

#endif
