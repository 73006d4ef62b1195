/* What blocks of a launch do one after another, where a GPU runs them side by side and here they run alone.
 *
 * Waits: a block that looks at a word which another block has written in the launch goes on when that block
 * has written it. Each warp has a delay: by how many cycles it lags behind a warp that waits for none. A word
 * has the time at which it was first written by its block, so that the second of two states that a block
 * publishes, as in a scan with look-back, is not taken for a chain. An addition is no wait: it returns at
 * once.
 *
 * Counters: where a sample of blocks runs, a thread that adds to a counter for the second time finds that
 * every other block has added to it, too. So blocks of a queue get their share of it, and not the first block
 * all. Blocks draw numbers that spread over all, where they do not wait in their order.
 * The closing block finds that all others have. */
#ifndef EVAL_SIM_MEMORY_BLOCK_WAITS_H
#define EVAL_SIM_MEMORY_BLOCK_WAITS_H

#include "eval/sim/memory/access.h"

/* Cycles from a store to what another block does next, beside its own wait, and that wait, for L2. */
enum { WAITS_HOP = 640, WAITS_LOOK = 400 };

void waits_start_launch(Exec *x);
void waits_start_block(Exec *x);
void waits_release(Exec *x);

/* A load that may look at what another block has written. */
void waits_look(Warp *w, const Access *a);
/* A strong store, before it is noted in the shadow of global memory. */
void waits_store(Warp *w, const Access *a);
/* An atomic, before it is noted there and before it changes memory. */
void waits_atomic(Warp *w, const Access *a);
/* All warps of the block go on together. */
void waits_barrier(Exec *x);
/* The block ends. Returns its delay. */
uint64_t waits_end_block(Exec *x);
/* Has a block of the launch gone on when another had written, by the operation or by one with its address? */
int waits_were_told(const Exec *x, const MemOp *mo);
/* Counters that the blocks of a sample drew from are as before. */
void waits_restore_counters(Exec *x);
/* Do sampled blocks draw numbers from a counter, each one once at least? */
int waits_has_counter(const Exec *x);

#endif
