/* Smaller sizes at which the errors of a case are measured. */
#ifndef TASKS_DERIVE_MEASURED_SIZES_H
#define TASKS_DERIVE_MEASURED_SIZES_H

#include "tasks/task.h"

/* Axes are halved in turn while one execution takes more than `flops`, and each node takes as many elements
 * together as before. rows: so many are enough of rows that are normalised; few: so many are enough of
 * all. 0: as many as before. */
typedef struct {
    const Task *t;
    double flops;
    int64_t rows, few;
} MeasuredSizes;

/* Of one size: the flops of an execution, the longest sum of results, and the elements of all outputs. */
typedef struct {
    double flops, sums, elements;
} MeasuredExtent;

/* Makes the workload of a graph smaller. own, at: its extent before and after. -1: it has none, and both are
 * ones. */
int measured_sizes(const MeasuredSizes *of, Workload *w, MeasuredExtent *own, MeasuredExtent *at);

#endif
