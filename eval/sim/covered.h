/* Does a sampled plan write each element of its outputs, and of what its launches read, with all blocks? */
#ifndef EVAL_SIM_COVERED_H
#define EVAL_SIM_COVERED_H

#include "eval/sim/coverage/coverage.h"
#include "eval/sim/decode/decode.h"

typedef struct PlanCoverage PlanCoverage;

/* All are borrowed. */
PlanCoverage *covered_new(const DevMem *mem, const DeviceLaunch *launches, int n,
                          const DeviceSample *s);
/* Every launch is announced before the first one runs. kernel NULL: it is a library call. */
void covered_kernel(PlanCoverage *c, int i, const PtxFunction *kernel);
/* From now on it takes up to some seconds, or not. */
void covered_patiently(PlanCoverage *c, int patiently);
/* Launch i has been sampled. module NULL: it is a library call. */
void covered_launch(PlanCoverage *c, int i, const PtxModule *module, const PtxFunction *kernel);
/* Fills in *s->written, and releases c. */
void covered_finish(PlanCoverage *c);

#endif
