/* The task gate: a task goes into a run only if its checks can tell a kernel that does the work
 * from one that does not. For every check workload, at three input scales:
 *   - null models (zeros, ones, a copy of each input that fits, the mean of the outputs for other
 * seeds, as one constant and element by element) must fail on every output;
 *   - each input, drawn anew, must move an output by more than 10 tolerances;
 *   - the reference must write every element, finitely, and repeat itself bit by bit;
 * and for needles, special values and integers it must be finite (unless the task declares infinite
 * inputs), and integral below 2^24 where the task says "exact". A task tagged degenerate is excused
 * from the first two: it is measured, but in no headline mean. */
#ifndef TASKS_GATE_H
#define TASKS_GATE_H

#include "tasks/task.h"

typedef struct {
    int refused;
    char reason[1024]; /* one sentence when refused; for a degenerate task what it was excused from
                        */
} GateResult;

/* -1: the task could not be judged (its reference is not built). */
int task_gate(Task *t, GateResult *out, Error *err);

#endif
