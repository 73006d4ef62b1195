/* The rounds of a block: what its warps do between the places where they meet. In a round the schedulers work
 * side by side, and it takes as long as the one with the most work; rounds follow one another. So warps of
 * one scheduler that compute in turn with those of another one take the sum of their turns.
 *
 * Warps meet at barriers of all threads and of some, at the ends of phases of mbarriers, and where one hears
 * what others have told it through memory. A round lasts until a warp of it meets others again. Warps that
 * meet none fill what the rounds leave idle. */
#ifndef EVAL_SIM_MEMORY_ROUNDS_H
#define EVAL_SIM_MEMORY_ROUNDS_H

#include "eval/sim/machine/exec.h"

void rounds_start_block(Exec *x);
/* What these warps have done so far, a bit for each, comes before what follows. */
void rounds_meet(Exec *x, uint32_t warps);
/* The block ends. Adds what its schedulers have done to the counts. */
void rounds_end_block(Exec *x);

#endif
