/* What stopped a candidate's launches, from the driver's number to an outcome and a sentence to act
 * on. */
#ifndef EVAL_CUDA_FAULT_H
#define EVAL_CUDA_FAULT_H

#include "eval/cuda/context/protocol.h"

/* 1: the candidate's fault, in *fault. 0: no launch can be blamed for this; it is the evaluator's.
 */
int fault_explain(const LaunchEnd *end, const DeviceLaunch *launches, int n, DeviceFault *fault);

/* The sequence was stopped from outside after so many seconds. */
void fault_timeout(const DeviceLaunch *launches, int n, double seconds, DeviceFault *fault);

/* The runner process ended by itself: signal or exit status as waitpid gives it. */
void fault_death(const DeviceLaunch *launches, int n, int status, DeviceFault *fault);

#endif
