/* The scheduler of a warp's splits. */
#ifndef EVAL_SIM_EXEC_SCHEDULER_H
#define EVAL_SIM_EXEC_SCHEDULER_H

#include "eval/sim/machine/exec.h"

void warp_start(Warp *w); /* all lanes at the kernel's first instruction */
/* Runs the warp until no split is ready or all have used a slice. Returns 1 when something ran. */
int warp_run(Warp *w);

#endif
