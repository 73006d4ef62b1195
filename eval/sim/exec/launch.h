/* Runs a kernel. x->code, x->entry, x->fault and x->budget are set by the caller. */
#ifndef EVAL_SIM_EXEC_LAUNCH_H
#define EVAL_SIM_EXEC_LAUNCH_H

#include "eval/sim/machine/exec.h"

/* Returns 1 with a fault. The counts are in x->counts. */
int exec_launch(Exec *x, const DeviceLaunch *launch);
void exec_release(Exec *x);

#endif
