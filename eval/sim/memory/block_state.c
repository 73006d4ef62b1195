/* Blocks in and out of Exec. */
#include "eval/sim/memory/block_state.h"
#include "eval/sim/memory/landed.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "eval/sim/memory/async_copy.h"
#include "eval/sim/memory/bulk_copy.h"
#include "eval/sim/memory/busy.h"
#include "eval/sim/memory/order.h"
#include "eval/sim/memory/path.h"
#include "eval/sim/memory/proxy.h"
#include "eval/sim/memory/undefined.h"
#include "eval/sim/memory/wgmma_reads.h"

/* The members that both structs have under one name, beside cta and pending. */
/* clang-format off */
#define MEMBERS(X)                                                                                           \
    X(warps) X(cap_warps) X(register_file) X(register_file_bytes) X(shared_store) X(shared_cap) X(async)     \
    X(bulk) X(wgmma) X(paths) X(order) X(proxy) X(landed) X(undefined_shared) X(undefined_local)             \
    X(undefined_cap) X(has_pending)
/* clang-format on */

void block_save(const Exec *x, BlockState *b)
{
    b->cta = x->cta;
    busy_leave(x, &b->cta);
#define X(member) b->member = x->member;
    MEMBERS(X)
#undef X
    if (x->has_pending) b->pending = x->pending;
}

void block_restore(Exec *x, const BlockState *b)
{
    x->cta = b->cta;
    busy_return(x);
#define X(member) x->member = b->member;
    MEMBERS(X)
#undef X
    if (b->has_pending) x->pending = b->pending;
}

void block_release(Exec *x)
{
    async_release(x);
    bulk_release(x);
    wgmma_release(x);
    path_release(x);
    order_release_block(x);
    proxy_release_block(x);
    landed_release(x);
    undefined_clear(x);
    free(x->warps);
    free(x->shared_store);
    if (x->register_file) munmap(x->register_file, x->register_file_bytes);
}
