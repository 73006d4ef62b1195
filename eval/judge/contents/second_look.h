/* A second look at an output of which few elements differ by more than the tolerance: each may err as much as
 * honest kernels do there, on the same inputs (tasks/derive/own_error.h). Where eager PyTorch may use TF32,
 * all may err as much as the largest error of TF32 on these inputs (tf32_own). */
#ifndef EVAL_JUDGE_CONTENTS_SECOND_LOOK_H
#define EVAL_JUDGE_CONTENTS_SECOND_LOOK_H

#include "tasks/graph/demand.h"
#include "tasks/task.h"

/* The n elements of an output that were compared. from: where the case has the first one of `all` elements.
 * inputs: as OwnElements has them. */
typedef struct {
    TaskCase of;
    int output;
    Tolerance by;
    size_t n, from, all;
    const DemandInputs *inputs;
} SecondLook;

/* 1: the first and the worst element are within their own errors, or all within that of TF32; 0: they are
 * not, or these errors are not known; -1: an Error. */
int second_look(const SecondLook *l, const TaskDifference *d, Error *err);

/* The same for elements within a wide tolerance. *d says which of them differ by more than the narrow
 * one, l->by. 1: the first and the worst element are within their own errors, or these errors are not known;
 * 0: an element is not; -1: an Error. */
int second_look_narrow(const SecondLook *l, const TaskDifference *d, Error *err);

#endif
