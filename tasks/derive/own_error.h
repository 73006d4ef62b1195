/* What honest kernels may err at one element of an output, on the inputs of a case. The tolerance of a case
 * is one number for all elements, and is measured on other inputs: an element whose sum one large product
 * decides, or whose row is divided by the least of few numbers, may need more.
 *
 * Where the graph is cheap it is executed by honest ways (honest_outputs), which tell the errors of the
 * element and of its row. Else the element is computed alone, of inputs whose elements are off by what their
 * terms err in a running sum (or, where eager PyTorch may use TF32, by its rounding): it moves by the
 * magnitude of its own terms. */
#ifndef TASKS_DERIVE_OWN_ERROR_H
#define TASKS_DERIVE_OWN_ERROR_H

#include "tasks/graph/demand.h"
#include "tasks/task.h"

/* n elements of one output, by flat indices. inputs: where the case's are; NULL: they are
 * drawn. */
typedef struct {
    const TaskCase *of;
    const DemandInputs *inputs;
    int output, n;
    const size_t *at;
} OwnElements;

/* error[k]: of element at[k]. 1: they are not known, since they cost too much or the task has no graph; -1:
 * an Error. */
int own_error(const OwnElements *e, double *error, Error *err);

/* Of an integer output, such as the place of a row's largest number. within[k]: 1 where honest kernels may
 * give got[k] for element at[k], since one of the honest ways does, or the element does when it is computed
 * of inputs that are off as above. Results as of own_error. */
int own_choice(const OwnElements *e, const double *got, int *within, Error *err);

#endif
