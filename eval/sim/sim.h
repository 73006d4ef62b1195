/* What the simulator shows beyond a device's function table: for tests and benches. */
#ifndef EVAL_SIM_SIM_H
#define EVAL_SIM_SIM_H

#include "eval/device/device.h"
#include "eval/sim/machine/counts.h"

extern const DeviceOps sim_device_ops; /* eval/sim/device.c */

const SimCounts *sim_last_counts(const Device *d); /* of the last launch */
void sim_set_limit(Device *d,
                   int64_t thread_instructions); /* of a timed run; an eighth of it for others */

#endif
