/* Inputs that an operator proves to be without effect: a softmax and a normalisation do not see what is added
 * to all elements of a row, attention not what is added to all keys. */
#ifndef TASKS_CANCELLED_H
#define TASKS_CANCELLED_H

#include "tasks/task.h"

/* 1: the graph with other elements of one input has the same results because every operator whose arguments
 * change and whose result stays adds nothing but the same number to each row; 0: that is not so, or there is
 * no graph. in[i]: the inputs' elements. */
int cancelled_input(const Task *t, const Workload *w, const double *const *in, int input,
                    const double *elements);

#endif
