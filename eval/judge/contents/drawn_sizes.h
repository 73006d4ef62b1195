/* Sizes that are drawn when a candidate is judged. Each is wide along one axis of the task, or along several
 * at once, and small along the others, so that a kernel runs with several blocks and several trips of its
 * loops in each direction. The seed draws them: no list of sizes can be learnt from task.json.
 *
 * All keep to the task's constraints and shapes, and no axis is above its timed size. */
#ifndef EVAL_JUDGE_CONTENTS_DRAWN_SIZES_H
#define EVAL_JUDGE_CONTENTS_DRAWN_SIZES_H

#include "tasks/task.h"

enum {
    DRAWN_DIRECTIONS = 8,
    DRAWN_LEVELS = 9, /* of a direction: each has twice the width of the last */
    DRAWN_LONG = 2049,
    DRAWN_LEAST = 65, /* the least width of level 0, where the timed size has it */
    DRAWN_NARROW = 16 /* an axis with a smaller timed size gets no check of its own */
};

/* The sizes of one task and seed, found when they are asked for. */
typedef struct DrawnSizes DrawnSizes;
DrawnSizes *drawn_sizes_new(const Task *t, uint64_t seed);
void drawn_sizes_free(DrawnSizes *d); /* NULL is allowed */

/* Each direction is an axis, or several of a task with many axes. Behind these comes the plane of the first
 * input's last two dimensions, where both are axes, and all axes at once, at level 0 alone. */
int drawn_sizes_directions(const DrawnSizes *d);

/* NULL: the task does not vary so, no size is within the bound of work, or the level has the sizes of the one
 * before. *d owns the result, whose atol is NULL. */
const Workload *drawn_sizes_at(DrawnSizes *d, int direction, int level);

/* The largest size of the direction's axes, or the elements of its plane. */
int64_t drawn_sizes_width(const DrawnSizes *d, int direction, const Workload *w);

/* Is w one that drawn_sizes_at may have given? */
int drawn_sizes_has(const DrawnSizes *d, const Workload *w);

/* The words and flops of task_cost, in a sum. HUGE_VAL: the task has no such sizes. */
double drawn_sizes_work(const Task *t, const Workload *w);

/* Sizes that a condition holds at. */
typedef struct {
    int (*holds)(void *of, const Workload *w);
    void *of;
    int wide;     /* no axis below DRAWN_LEAST that can be so large within max_work; no multiples */
    int long_one; /* wide: the axis that has DRAWN_LONG or more, if it can; -1: none */
} DrawnCondition;

/* Sizes at which the condition holds, with as little work as a search finds, at most max_work. Where they
 * can be, they are multiples of powers of two that the timed sizes are multiples of, up to 16. Returns 0,
 * or -1: none were found. */
int drawn_sizes_where(const Task *t, uint64_t seed, const DrawnCondition *c, double max_work,
                      Workload *out);

#endif
