/* The blocks of a sample in order (sample.h): which of them run behind the counted ones, and how long all
 * blocks of the grid wait for one another. */
#ifndef EVAL_SIM_SAMPLE_ORDER_H
#define EVAL_SIM_SAMPLE_ORDER_H

#include "eval/device/device.h"
#include "eval/sim/sample.h"

/* Should further blocks run, whose delays alone are noted? */
int order_pass_on(Sample *s);
/* Cycles by which the blocks of the grid wait longer than a block alone: those that ran, and, where the delay
 * grows from block to block, those behind. Kinds that the sample did not come to may wait for one another,
 * where none of the others do; so may all blocks behind, where one of them has waited in vain for what no
 * block that ran waits for. */
double order_waits(const Sample *s);

/* Runs blocks far behind alone. Where one waits in vain, sets of->must and of->vain. */
void order_scout(Device *d, SampleOf *of);

#endif
