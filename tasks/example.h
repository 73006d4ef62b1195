/* A task's check workloads as files for other programs: inputs as drawn, and what the reference makes of
 * them, in NumPy's format. */
#ifndef TASKS_EXAMPLE_H
#define TASKS_EXAMPLE_H

#include "tasks/task.h"

enum { EXAMPLE_MAX_ELEMENTS = 1 << 24 }; /* of one tensor */

/* Writes dir/N/NAME.npy, arrays of float64, for the N-th check workload and each input and output. */
int example_write(Task *t, uint64_t seed, const char *dir, Error *err);

#endif
