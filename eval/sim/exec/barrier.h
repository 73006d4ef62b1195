/* The barriers of a block, and of its cluster. */
#ifndef EVAL_SIM_EXEC_BARRIER_H
#define EVAL_SIM_EXEC_BARRIER_H

#include "eval/sim/machine/exec.h"

void barrier_passed(Exec *x);    /* orders all accesses before it and all after it */
void barrier_check_all(Exec *x); /* completes the barriers that all live threads have reached */
void barrier_deadlock(Exec *x);  /* nothing can run: fills the fault */
/* The running split of a cluster's block exits. Returns 0, or -1 with a fault. */
int cluster_exit(Warp *w, const Inst *in);

#endif
