/* Does a sampled plan write each element of its outputs, and of what its launches read, with all blocks? */
#ifndef EVAL_SIM_COVERED_H
#define EVAL_SIM_COVERED_H

#include "eval/device/device.h"
#include "eval/sim/machine/device_memory.h"

typedef struct PlanCoverage PlanCoverage;

/* Before the first launch runs. All are borrowed. */
PlanCoverage *covered_new(const DevMem *mem, const DeviceLaunch *launches, int n,
                          const DeviceSample *s);
/* From now on it takes up to some seconds, or not. */
void covered_patiently(PlanCoverage *c, int patiently);
/* Launch i has been sampled. */
void covered_launch(PlanCoverage *c, int i);
/* Fills in *s->written, and releases c. */
void covered_finish(PlanCoverage *c);

#endif
