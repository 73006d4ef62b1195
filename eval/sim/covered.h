/* Which elements of its outputs a sampled plan writes, with all blocks of its launches. */
#ifndef EVAL_SIM_COVERED_H
#define EVAL_SIM_COVERED_H

#include "eval/sim/coverage/coverage.h"

typedef struct PlanCoverage PlanCoverage;

/* All are borrowed. */
PlanCoverage *covered_new(const DevMem *mem, const DeviceLaunch *launches, const DeviceSample *s);
/* Every kernel of the plan's own is announced before the first launch. */
void covered_kernel(PlanCoverage *c, const PtxFunction *kernel);
/* Launch i has been sampled. kernel NULL: it is a library call. */
void covered_launch(PlanCoverage *c, int i, const PtxFunction *kernel);
/* Fills in s->written, and releases c. */
void covered_finish(PlanCoverage *c);

#endif
