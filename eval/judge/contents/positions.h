/* Whether positions along a task's axis `turns` depend on one another. Rows of a softmax do not; those of a
 * batch norm, or of a tensor that its own norm divides, do, although turned inputs give turned outputs
 * there too. */
#ifndef EVAL_JUDGE_CONTENTS_POSITIONS_H
#define EVAL_JUDGE_CONTENTS_POSITIONS_H

#include "tasks/task.h"

/* Does the reference of some positions alone give what that of all positions gives for them? It is tried once
 * a task, at the cheapest check workload of three positions or more, and kept in *t. 0 also where the
 * reference fails, or no check workload has two positions. t has an axis `turns` that shortened_has_axis
 * accepts. */
int positions_independent(Task *t);

/* The reference of a workload beside that of another one, whose inputs have the same elements in other
 * places, or again. */
typedef struct {
    Task *task;
    const Workload *of;
    Workload other;
    double *in[TASK_MAX_TENSORS], *out[TASK_MAX_TENSORS]; /* of the workload */
    double *other_in[TASK_MAX_TENSORS], *other_out[TASK_MAX_TENSORS];
    size_t n_out[TASK_MAX_TENSORS]; /* elements of `out` */
} Twin;

/* Draws inputs for `of`, computes its outputs, and repeats the inputs over `room`, which is as large as
 * `other` at least. Close in every case. */
int twin_open(Twin *r, const Workload *room, Error *err);
/* Computes the outputs of `other`. */
int twin_run(Twin *r, Error *err);
void twin_close(Twin *r);
/* The root of the mean square of the output's finite elements. */
double twin_magnitude(const Twin *r, int output);

#endif
