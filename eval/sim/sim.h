/* Functions of the simulator beyond the interface of a device, for tests and benchmarks. */
#ifndef EVAL_SIM_SIM_H
#define EVAL_SIM_SIM_H

#include "eval/device/device.h"
#include "eval/sim/machine/counts.h"

extern const DeviceOps sim_device_ops; /* eval/sim/device.c */

const SimCounts *sim_last_counts(const Device *d); /* of the last launch */
/* Sets the limit of a timed run. Other runs get an eighth of it. */
void sim_set_limit(Device *d, int64_t thread_instructions);

#endif
