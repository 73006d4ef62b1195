/* The order between blocks in global memory, by PTX's memory model: a fence, or a release, orders what
 * comes before it before the strong store or atomic that follows; who observes that store, and acquires,
 * comes after. Each has a scope, which has to hold both blocks. Barriers hand both on to the other
 * warps.
 *
 * What is known is kept as nodes. A release node says up to which position each warp of a block has
 * gone (fences.h); further nodes are unions. Each place in memory that such a store has changed has
 * a node, each warp has one, and an earlier access is ordered when a release that covers it can be reached
 * from the warp's node.
 *
 * A position is a tag of the shadow of global memory without warp and bytes (shadow_global.c). */
#ifndef EVAL_SIM_MEMORY_ORDER_H
#define EVAL_SIM_MEMORY_ORDER_H

#include "eval/sim/memory/shadow.h"

/* The running block's position. */
static inline uint64_t order_position(const Cta *c)
{
    return (uint64_t)c->tag << (32 - TAG_PHASE_SHIFT) | (c->phase & 0x3fffff);
}

typedef struct BlockOrder BlockOrder;
typedef struct OrderGraph OrderGraph;

void order_start_launch(Exec *x);
void order_start_block(Exec *x);
void order_start_cluster(Exec *x);
void order_release_block(Exec *x); /* frees what the current block has */
void order_release(Exec *x);

/* A fence. scope: SCOPE_*; kind: FENCE_ACQUIRES, FENCE_RELEASES. own: the position of the warp's last
 * access. Returns the node of what it releases to other blocks, or 0. */
uint32_t order_fence(Warp *w, int scope, int kind, uint64_t own);
void order_barrier(Exec *x); /* x->cta.passed is the position there */
/* A barrier of the cluster: all that the block has done comes before what others do after it. */
void order_join_cluster(Exec *x);
void order_take_cluster(Exec *x);

/* The bytes of an access to global memory are read by a strong load or an atomic; by a weak load, which
 * a fence has to follow; or are changed by a strong store or an atomic. */
void order_observe(Warp *w, const Access *a);
void order_glance(Warp *w, const Access *a);
void order_publish(Warp *w, const Access *a);
/* A strong access of shared memory may find a flag of another warp. */
void order_meet(Warp *w);

/* Does an earlier access of another block, which left this tag, come before what the warp does now? */
int order_knows(Warp *w, uint64_t tag);

#endif
