/* Copies by tensor maps in the slice of a kernel: which bytes a box has in other blocks, too. */
#ifndef EVAL_SIM_COVERAGE_SLICE_BOXES_H
#define EVAL_SIM_COVERAGE_SLICE_BOXES_H

#include "eval/sim/coverage/slice_run.h"

/* Adds what lies in the tensor of the boxes of the lanes of m: from[0] is the map's address, from[1] and so
 * on are `rank` coordinates. Returns -1 where there is no such map. */
int slice_boxes_add(SliceRun *r, int rank, const Lanes *from, const LaneMask *m);

#endif
