/* What blocks read to no effect: elements of tensors that some blocks of each launch read, each of which is
 * replaced in turn, and whether these blocks write other bytes then. */
#ifndef EVAL_SIM_IDLE_H
#define EVAL_SIM_IDLE_H

#include "eval/sim/sim_launches.h"

/* As DevicePrediction.idle. */
void sim_idle(Device *d, const DeviceLaunch *launches, int n, DeviceIdle *out);

#endif
