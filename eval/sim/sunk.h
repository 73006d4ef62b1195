/* Loads of global memory that the assembler moves down behind waits for others: the PTX issues them together,
 * the machine code in turn, to need fewer registers. */
#ifndef EVAL_SIM_SUNK_H
#define EVAL_SIM_SUNK_H

#include "eval/device/device.h"
#include "eval/sim/machine/counts.h"

/* Adds these waits to the counters of a launch, whose blocks have run. */
void sunk_charge(const DeviceLaunch *l, SimCounts *c);

#endif
