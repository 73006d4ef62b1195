/* The barriers of a block, and of its cluster. */
#ifndef EVAL_SIM_EXEC_BARRIER_H
#define EVAL_SIM_EXEC_BARRIER_H

#include "eval/sim/machine/exec.h"

void barrier_passed(Exec *x);    /* orders all accesses before it and all after it */
void barrier_check_all(Exec *x); /* completes the barriers that all live threads have reached */
void barrier_deadlock(Exec *x);  /* nothing can run: fills the fault */
/* A warp runs without end, and is here now: does it wait at an mbarrier? Then reports that and returns 1. */
int mbarrier_is_stuck(Warp *w, const Inst *in);
/* The running split of a cluster's block exits. Returns 0, or -1 with a fault. */
int cluster_exit(Warp *w, const Inst *in);

#endif
