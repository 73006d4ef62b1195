/* What a candidate is tested with: inputs drawn for one workload, seed and scale, and the outputs
 * that the double-precision reference computes from them, here, away from the device. The same cases
 * come again for every candidate of a task, so the last ones are kept. */
#ifndef EVAL_CASES_H
#define EVAL_CASES_H

#include "tasks/task.h"

typedef struct {
    const Task *task;
    const Workload *workload;
    uint64_t seed;
    double scale;
    void *inputs[TASK_MAX_TENSORS];
    size_t input_bytes[TASK_MAX_TENSORS];
    double *expected[TASK_MAX_TENSORS];     /* by output */
    size_t output_bytes[TASK_MAX_TENSORS];
} Case;

typedef struct Cases Cases;

Cases *cases_new(size_t max_bytes);
void cases_free(Cases *c);

/* NULL: the task failed. The case lives until two further calls at least, or cases_free. */
const Case *cases_get(Cases *c, Task *t, const Workload *w, uint64_t seed, double scale, Error *err);

/* The seed of one draw: unknown to whoever does not know the evaluator's. */
uint64_t case_seed(uint64_t evaluator_seed, const Task *t, const Workload *w, int trial);

#endif
