/* The task gate. A task enters a run only if its checks can tell a kernel that does the work from one
 * that does not, wherever it leaves the work out:
 *   - at each check workload null models must fail on every output: zeros, ones, a copy of each input that
 *     fits, and the mean of the outputs over other seeds, as one constant and element by element;
 *   - each input, drawn again, must move an output by more than 10 tolerances at one or more of the check
 *     workloads. A kernel that ignores the input is refused there, whatever the others show: it may cancel
 *     at small sizes alone, as in a norm of groups of one channel. What derives a task excludes that it
 *     cancels at sizes like the timed ones.
 * Both rules apply at input scale 1 only, the scale of the timed inputs. At another scale the tolerance may
 * hide an input that matters at scale 1. At all three scales the reference must write every element,
 * finitely, and give the same bits twice.
 *
 * For needles, special values and integers the reference must be finite (unless the task declares
 * infinite inputs), and integral below 2^24 where the task says "exact". A task tagged degenerate is
 * excused from null models and inputs: it is measured, but is in no headline mean. A costly graph has
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

enum { GATE_UNTRIED, GATE_STILL, GATE_MOVES }; /* an input at one check workload; in this order */

/* What one check workload shows. hard: a mistake of the task; null: a null model passes at the input scale
 * 1; soft: one passes or an input moves nothing, at any scale, the first of these; input: at scale 1. */
typedef struct {
    GateResult hard, null, soft;
    unsigned char input[TASK_MAX_TENSORS];
} GateFound;

int task_gate_workload(Task *t, const Workload *w, GateFound *out, Error *err);
/* At the input scale 1 alone, and not `hard`. What is refused so with some tolerance, is with a larger
 * one. */
int task_gate_once(Task *t, const Workload *w, GateFound *out, Error *err);
/* Of a graph: refuses an input for which a kernel may take zeros, at the input scale 1. */
int task_gate_zeroed(Task *t, const Workload *w, GateResult *out, Error *err);

/* Adds to the state of each input what one check workload shows, which is nothing where a null model passes;
 * the first that was tried and moves nothing, -1: each moves an output. */
void gate_inputs_add(const Task *t, const GateFound *f, unsigned char *input);
int gate_inputs_still(const Task *t, const unsigned char *input);

#endif
