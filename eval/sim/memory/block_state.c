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

void block_save(const Exec *x, BlockState *b)
{
    b->cta = x->cta;
    busy_leave(x, &b->cta);
    b->warps = x->warps;
    b->cap_warps = x->cap_warps;
    b->register_file = x->register_file;
    b->register_file_bytes = x->register_file_bytes;
    b->shared_store = x->shared_store;
    b->shared_cap = x->shared_cap;
    b->async = x->async;
    b->bulk = x->bulk;
    b->wgmma = x->wgmma;
    b->paths = x->paths;
    b->order = x->order;
    b->proxy = x->proxy;
    b->landed = x->landed;
    b->undefined_shared = x->undefined_shared;
    b->undefined_local = x->undefined_local;
    b->undefined_cap = x->undefined_cap;
    b->has_pending = x->has_pending;
    if (x->has_pending) b->pending = x->pending;
}

void block_restore(Exec *x, const BlockState *b)
{
    x->cta = b->cta;
    busy_return(x);
    x->warps = b->warps;
    x->cap_warps = b->cap_warps;
    x->register_file = b->register_file;
    x->register_file_bytes = b->register_file_bytes;
    x->shared_store = b->shared_store;
    x->shared_cap = b->shared_cap;
    x->async = b->async;
    x->bulk = b->bulk;
    x->wgmma = b->wgmma;
    x->paths = b->paths;
    x->order = b->order;
    x->proxy = b->proxy;
    x->landed = b->landed;
    x->undefined_shared = b->undefined_shared;
    x->undefined_local = b->undefined_local;
    x->undefined_cap = b->undefined_cap;
    x->has_pending = b->has_pending;
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
