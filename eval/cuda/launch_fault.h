/* Why a candidate's launches stopped: an outcome and a sentence that a model can act on, made from
 * the driver's error number, a timeout or the end of the runner process. */
#ifndef EVAL_CUDA_LAUNCH_FAULT_H
#define EVAL_CUDA_LAUNCH_FAULT_H

#include "eval/cuda/context/protocol.h"

/* Returns 1 with *fault when the candidate is at fault, 0 when no launch can be blamed and the
 * evaluator failed. */
int launch_fault_explain(const LaunchEnd *end, const DeviceLaunch *launches, int n, Fault *fault);

/* The runner was killed because the sequence did not end within so many seconds. */
void launch_fault_timeout(const DeviceLaunch *launches, int n, double seconds, Fault *fault);

/* The runner process ended by itself; `status` comes from waitpid. */
void launch_fault_exit(const DeviceLaunch *launches, int n, int status, Fault *fault);

#endif
