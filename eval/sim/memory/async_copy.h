/* The asynchronous copies under way, for barriers and the start of blocks. */
#ifndef EVAL_SIM_MEMORY_ASYNC_COPY_H
#define EVAL_SIM_MEMORY_ASYNC_COPY_H

#include "eval/sim/machine/exec.h"

/* Ties the lane's copies to an mbarrier: they land when its phase ends, at the latest. */
void async_tie(Warp *w, int lane, uint32_t barrier);
/* Lands the copies tied to an mbarrier. Returns 0, or -1 with a fault. */
int async_land_tied(Warp *w, const Inst *in, uint32_t barrier);
/* The line of a copy under way that writes some of these bytes of shared memory; -1: there is none. */
int async_line_at(const Exec *x, uint64_t at, uint32_t bytes);
/* The line of a copy to some of these bytes, where another one that was under way at the same time left
 * others; -1: there is none. */
int async_clash_at(const Exec *x, uint64_t at, uint32_t bytes);
void async_start_block(Exec *x); /* drops the copies of the block before */
void async_release(Exec *x);

#endif
