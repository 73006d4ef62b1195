/* Runs a kernel. x->code, x->entry, x->fault and x->budget are set by the caller. */
#ifndef EVAL_SIM_EXEC_LAUNCH_H
#define EVAL_SIM_EXEC_LAUNCH_H

#include "eval/sim/machine/exec.h"

/* Returns 1 with a fault. The counts are in x->counts. */
int exec_launch(Exec *x, const DeviceLaunch *launch);
/* Runs the blocks that `next` gives, until it returns 0. Before each call but the first x->counts are
 * those of the block that has run, whose sectors count as touched by no other. x->budget bounds
 * them together. Returns 1 with a fault. */
typedef int ExecNext(void *of, const SimCounts *done, uint64_t *block);
int exec_launch_some(Exec *x, const DeviceLaunch *launch, ExecNext *next, void *of);
void exec_release(Exec *x);

#endif
