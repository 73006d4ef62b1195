/* What warps know of the bulk copies that have landed in their block's shared memory, and of the products
 * (wgmma) that have read there. A copy is there for who
 * has waited for the phase of its own mbarrier, or has met such a warp since: at a barrier, at a further
 * mbarrier, or by a word of shared memory. A wait for another copy's mbarrier, be it a later one, tells
 * nothing: a device may complete copies in any order. What other blocks of a cluster read is not followed.
 * That the products of a warpgroup are done is known to its warp that has waited for them by
 * wgmma.wait_group, and to who has met that warp since.
 *
 * A landing is the end of an mbarrier's phase; landings count on from block to block. Each word has the
 * landing that brought it, and its mbarrier's slot. The functions do nothing before a block's first one. */
#ifndef EVAL_SIM_MEMORY_LANDED_H
#define EVAL_SIM_MEMORY_LANDED_H

#include "eval/sim/memory/access.h"

typedef struct Landed Landed;

void landed_start_block(Exec *x);
void landed_release(Exec *x); /* frees what the current block has */

/* The phase of the mbarrier at this offset ends, for which copies are under way; then what it brings. */
void landed_begin(Exec *x, uint32_t barrier);
void landed_note(Exec *x, uint64_t at, uint64_t bytes);
/* Ordinary stores of these bytes. */
void landed_overwrite(Exec *x, uint64_t at, uint64_t bytes);

/* The warp arrives at an mbarrier; its phase has ended; the warp has seen that. */
void landed_arrive(Warp *w, uint32_t barrier);
void landed_end_phase(Exec *x, uint32_t barrier);
void landed_await(Warp *w, uint32_t barrier);
/* A barrier of the block has been passed; a warp may have met others by a word. */
void landed_join(Exec *x);
void landed_meet(Warp *w);

/* The warp has waited for so many products of its warpgroup in this block. */
void landed_multiplied(Warp *w, uint32_t products);
/* How many products of a warpgroup the warp knows to be done; UINT32_MAX where this is not followed. */
uint32_t landed_products(const Warp *w, int group);

/* The bytes are read. Returns 0; or -1, and says at which mbarrier the warp has not waited. */
int landed_missing(const Warp *w, uint64_t at, uint64_t bytes, uint32_t *barrier);
/* The first chunk of 16 bytes, of n, that the warp has not waited for, and that is not to be skipped; -1: it
 * has waited for all. */
int landed_missing_chunk(const Warp *w, const uint32_t *at, int n, const uint8_t *skip,
                         uint32_t *barrier);

#endif
