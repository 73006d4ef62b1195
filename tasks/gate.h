/* The task gate. A task enters a run only if its checks can tell a kernel that does the work from one
 * that does not. For every check workload, at three input scales:
 *   - null models must fail on every output: zeros, ones, a copy of each input that fits, and the
 *     mean of the outputs over other seeds, as one constant and element by element;
 *   - each input, drawn again, must move an output by more than 10 tolerances;
 *   - the reference must write every element, finitely, and give the same bits twice.
 * For needles, special values and integers the reference must be finite (unless the task declares
 * infinite inputs), and integral below 2^24 where the task says "exact". A task tagged degenerate is
 * excused from the first two rules: it is measured, but is in no headline mean. A costly graph has
 * fewer seeds, one scale, and some of its parameters drawn again, spread over the graph; its other seeds
 * and variants have the same parameters. */
#ifndef TASKS_GATE_H
#define TASKS_GATE_H

#include "tasks/task.h"

typedef struct {
    int refused, rotated; /* rotated: refused since "turns" does not hold */
    char reason[1024];    /* why it is refused, or what a degenerate task is excused from */
} GateResult;

/* Returns -1 if the task cannot be judged, for example without a compiled reference. */
int task_gate(Task *t, GateResult *out, Error *err);

/* One check workload. hard: a mistake of the task; soft: what a degenerate task is excused from. */
int task_gate_workload(Task *t, const Workload *w, GateResult *hard, GateResult *soft, Error *err);
/* What a degenerate task is excused from, at the input scale 1 alone. What is refused so with some
 * tolerance, is with a larger one. */
int task_gate_once(Task *t, const Workload *w, int *refused, Error *err);

#endif
