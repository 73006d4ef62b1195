/* What the machine code has and the PTX has not: registers that the assembler spilled, loads and stores of
 * local memory, and waits of loads that it moved (sunk.h). */
#ifndef EVAL_SIM_SPILLS_H
#define EVAL_SIM_SPILLS_H

#include "eval/device/device.h"
#include "eval/sim/machine/counts.h"

/* Adds their traffic and waits to the counters of a launch, whose blocks have run. Spilled registers hit L1
 * as far as those of the resident threads fit there. */
void assembler_charge(const Device *d, const DeviceLaunch *l, SimCounts *c);

#endif
