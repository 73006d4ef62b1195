/* How long the blocks of a launch run where the contents of memory decide it: the part of the kernel that
 * decides (coverage/control.h) runs for each block, as far as a limit of work goes, from a drawn one on. So a
 * sample has a block of each length, also where one of thousands takes far longer than the others. */
#ifndef EVAL_SIM_TRIPS_H
#define EVAL_SIM_TRIPS_H

#include "eval/sim/coverage/census.h"
#include "eval/sim/sim_launches.h"

/* Launch i of a sample. */
typedef struct {
    const DeviceLaunch *launches;
    int i;
    const DeviceSample *sample;
} TripsOf;

/* Divides the kinds of the launch's census by how long their blocks run. Blocks that the limit leaves out
 * have no kind where others differ. Where blocks read what the samples of earlier launches have not written,
 * these launches run whole, as far as they are cheap and change neither an output nor what they read. */
void trips_find(Device *d, const TripsOf *of, Census *census);

#endif
