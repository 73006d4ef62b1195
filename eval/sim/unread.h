/* What a plan leaves unread: bytes of its inputs, and of what its kernels write to its buffers, that no
 * launch reads, with all blocks (eval/sim/coverage). */
#ifndef EVAL_SIM_UNREAD_H
#define EVAL_SIM_UNREAD_H

#include "eval/sim/sim.h"

/* As DevicePrediction.unread. */
void sim_unread(Device *d, const DeviceLaunch *launches, int n, DeviceUnread *u);

#endif
