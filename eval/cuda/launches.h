/* Launch sequences of the device "cuda:N": each is encoded, executed in the runner of its modules'
 * home, and its end becomes a fault or an error. All functions return 1 with *fault when the
 * candidate is at fault. */
#ifndef EVAL_CUDA_LAUNCHES_H
#define EVAL_CUDA_LAUNCHES_H

#include "eval/cuda/cuda_device.h"

int launches_run(Device *d, const DeviceLaunch *launches, int n, Fault *fault);
/* phase: where in the period of the memory's stalls the sequence begins, in [0, 1); below 0:
 * anywhere. */
int launches_clock(Device *d, const DeviceLaunch *launches, int n, ClockMode mode, double phase,
                   DeviceClock *out, Fault *fault);
/* Hardware counters of one run: fills out->counters. */
int launches_count(Device *d, const DeviceLaunch *launches, int n, DeviceTiming *out, Fault *fault);

#endif
