/* What a candidate is tested with: inputs drawn for one workload, variant, seed and scale, and the
 * outputs that the double-precision reference computes from them, here, away from the device. The
 * same cases come again for every candidate of a task, so the last ones are kept. */
#ifndef EVAL_JUDGE_CASES_H
#define EVAL_JUDGE_CASES_H

#include "eval/device/device.h"
#include "tasks/task.h"

typedef struct {
    const Task *task;
    const Workload *workload;
    uint64_t seed;
    Variant variant;
    double scale; /* of what is drawn; 1 for the other variants */
    void *inputs[TASK_MAX_TENSORS];
    size_t input_bytes[TASK_MAX_TENSORS];
    double *expected[TASK_MAX_TENSORS]; /* by output */
    size_t output_bytes[TASK_MAX_TENSORS];
    double atol[TASK_MAX_TENSORS], rtol[TASK_MAX_TENSORS]; /* by output: task_tolerance */
    /* On a device that keeps contents, instead of the host's copies, which are then NULL. */
    DeviceGolden *golden_inputs[TASK_MAX_TENSORS], *golden_expected[TASK_MAX_TENSORS];
} Case;

typedef struct Cases Cases;

/* ops NULL: no device, everything in host memory. max_bytes: of whichever memory holds the
 * contents. */
Cases *cases_new(size_t max_bytes, const DeviceOps *ops, Device *device);
void cases_free(Cases *c);

/* The device that keeps contents, when it is open, as many as it has room for; before, cases_draw
 * alone may be called. */
void cases_open(Cases *c, Device *device);
/* Draws one already, in host memory: cases_get takes it to the device. */
int cases_draw(Cases *c, Task *t, const Workload *w, Variant v, uint64_t seed, double scale,
               Error *err);

/* NULL: the task failed. The case lives until two further calls at least, or cases_free. */
const Case *cases_get(Cases *c, Task *t, const Workload *w, Variant v, uint64_t seed, double scale,
                      Error *err);

/* "check rows=7 cols=33, input scale 8" or "check rows=7 cols=33, needles" */
void case_text(const Case *c, char *out, size_t size);

/* The seed of one draw: unknown to whoever does not know the evaluator's. */
uint64_t case_seed(uint64_t evaluator_seed, const Task *t, const Workload *w, int trial);

#endif
