/* Functions of the simulator beyond the interface of a device, for tests and benchmarks. */
#ifndef EVAL_SIM_SIM_H
#define EVAL_SIM_SIM_H

#include "eval/device/device.h"
#include "eval/sim/machine/counts.h"

extern const DeviceOps sim_device_ops; /* eval/sim/device.c */

/* The counters of the last launch. Those of requests to global memory are there after a predict or a
 * sample; after a run only when sim_count_all was called. */
const SimCounts *sim_last_counts(const Device *d);
void sim_count_all(Device *d);
/* Sets the limit of a timed run. Other runs get an eighth of it, or more where their work needs it. */
void sim_set_limit(Device *d, int64_t thread_instructions);

#endif
