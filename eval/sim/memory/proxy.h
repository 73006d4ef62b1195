/* The asynchronous proxy: bulk copies and wgmma. What threads have written by ordinary stores they may read
 * only behind a fence.proxy.async, by the writer or by who has met the writer at a barrier since, that
 * comes before the copy or product. What the proxy itself has written needs none, nor do ordinary reads of
 * it. Kept where a module has such instructions; the functions do nothing elsewhere.
 *
 * Two things that CUTLASS does pass: a product reads what cp.async has brought, and zeros. */
#ifndef EVAL_SIM_MEMORY_PROXY_H
#define EVAL_SIM_MEMORY_PROXY_H

#include "eval/sim/memory/access.h"

typedef struct ProxyFences ProxyFences;

void proxy_start_block(Exec *x);
void proxy_release_block(Exec *x);   /* frees what the current block has */
void proxy_fence(Warp *w, int kind); /* FENCE_PROXY_* */
void proxy_barrier(Exec *x);

/* Ordinary stores, or atomics, to shared memory; and copies that land there. */
void proxy_note_write(Warp *w, const Access *a);
void proxy_note_landed(Exec *x, uint64_t at, uint64_t bytes);
/* Read by the proxy: bytes of shared memory, by a copy or a product; an access to global memory. Return 0,
 * or -1 with a fault. */
int proxy_check_copy(Warp *w, const Inst *in, int lane, uint64_t at, uint64_t bytes);
int proxy_check_product(Warp *w, const Inst *in, uint64_t at, uint64_t bytes);
int proxy_check_global(Warp *w, const Access *a);

#endif
