/* How long the blocks of a launch run where the contents of memory decide it: the part of the kernel that
 * decides (coverage/control.h) runs for each block, as far as a limit of work goes, from a drawn one on. So a
 * sample has a block of each length, also where one of thousands takes far longer than the others. */
#ifndef EVAL_SIM_TRIPS_H
#define EVAL_SIM_TRIPS_H

#include "eval/sim/coverage/census.h"
#include "eval/sim/sim_launches.h"

/* Divides the kinds of the launch's census by how long their blocks run. Blocks that the limit leaves out
 * have no kind where others differ. */
void trips_find(Device *d, const DeviceLaunch *l, uint64_t seed, Census *census);

#endif
