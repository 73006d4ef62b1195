/* How long the running block has kept its SM busy so far: the cycles of the pipe of a scheduler, or of the
 * memory of the SM, that it has used the most. A block that tells another one to go on has taken at least
 * these, whichever of its warps did the work. */
#ifndef EVAL_SIM_MEMORY_BUSY_H
#define EVAL_SIM_MEMORY_BUSY_H

#include "eval/sim/machine/exec.h"

/* The block begins. */
void busy_start_block(Exec *x);
/* Other blocks run from now on, and x->counts with them; `c` is the block's, kept apart. */
void busy_leave(const Exec *x, Cta *c);
void busy_return(Exec *x);

double busy_cycles(const Exec *x);
/* Of these, those of the SM's memory: of its port to L2, of L1 and shared memory, or of atomics there. */
double busy_memory_cycles(const Exec *x);
/* Adds the cycles of each of these parts. */
void busy_add_memory(const Exec *x, uint64_t cycles[BUSY_MEMORY]);
/* The most cycles of a path, by a pipe or a part of the memory. */
uint64_t busy_path_cycles(const Exec *x, const WarpPath *path);

#endif
