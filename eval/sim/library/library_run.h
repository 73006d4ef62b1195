/* Compute a vendor library call in simulated memory, with sums in double precision. */
#ifndef EVAL_SIM_LIBRARY_LIBRARY_RUN_H
#define EVAL_SIM_LIBRARY_LIBRARY_RUN_H

#include "eval/sim/machine/device_memory.h"

/* Returns -1 when an operand is not in one buffer, or holds values that nothing wrote: a baseline is
 * trusted, so that this is an error and no fault. */
int library_run(DevMem *m, const DeviceLaunch *call, Error *err);

/* What the call takes the host, in thread-instructions. 0: library_run reports an error. */
int64_t library_run_cost(const DeviceLaunch *call);

#endif
