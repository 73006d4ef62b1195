/* The kernel generator: a right candidate for a task's graph without a draw. Expressions are joined as far
 * as one kernel can compute them; products, convolutions and what is no expression stay op lines. */
#ifndef GENERATE_FIRST_H
#define GENERATE_FIRST_H

#include "tasks/task.h"

typedef struct {
    char *source;           /* the candidate, which the caller frees */
    int n_kernels, n_lines; /* launches of its own, and op lines */
} Generated;

/* UNSUPPORTED says what the graph has that cannot be written. */
int generate_first(const Task *task, Generated *out, Error *err);

#endif
