/* Registers that the assembler spilled: loads and stores of local memory that the machine code has and the
 * PTX has not. */
#ifndef EVAL_SIM_SPILLS_H
#define EVAL_SIM_SPILLS_H

#include "eval/device/device.h"
#include "eval/sim/machine/counts.h"

/* Adds their traffic and waits to the counters of a launch, whose blocks have run. They hit L1 as far as the
 * spilled registers of the resident threads fit there. */
void spills_charge(const Device *d, const DeviceLaunch *l, SimCounts *c);

#endif
