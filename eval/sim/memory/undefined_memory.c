/* The maps of shared and local memory are allocated for the block that stores the first undefined
 * value, and freed when the next one starts. Global memory has its own (device_memory.h). */
#include "eval/sim/memory/undefined_memory.h"

#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/memory/cluster.h"
#include "eval/sim/memory/undefined.h"

enum { ALLOCATION_COST = 500 }; /* in thread-instructions */

Place undefined_place(const Warp *w, const MemOp *mo, int lane, int item)
{
    uint64_t at = access_lane_address(w, mo, lane) + (uint64_t)(item * mo->element);
    PtxSpace space = (PtxSpace)mo->space;
    if (space == SPACE_GENERIC) {
        space = access_space(at);
        if (space != SPACE_GLOBAL) at &= ~(uint64_t)WINDOW_MASK;
    }
    return (Place){space, at, mo->element};
}

/* The map of the block in whose shared memory the place is, which becomes relative to that block. */
static unsigned char **shared_map(const Exec *x, Place *p)
{
    Cluster *k = x->cluster;
    int rank = k && p->at > CLUSTER_OFFSET ? cluster_rank(k, p->at) : -1;
    if (rank >= 0) p->at &= CLUSTER_OFFSET;
    return (unsigned char **)(uintptr_t)(rank < 0 || rank == k->current
                                             ? &x->undefined_shared
                                             : &k->blocks[rank].state.undefined_shared);
}

static void allocate_map(Exec *x, PtxSpace space, unsigned char **shared)
{
    if (space == SPACE_SHARED && !*shared) {
        exec_charge(x, x->cta.shared_size / 16 + ALLOCATION_COST);
        *shared = memory_alloc((size_t)x->cta.shared_size + 1);
    }
    if (space == SPACE_LOCAL && !x->undefined_local) {
        x->undefined_cap = x->local_cap;
        exec_charge(x, (int64_t)x->undefined_cap * MAX_WARPS / 8 + ALLOCATION_COST);
        x->undefined_local = memory_array(x->undefined_cap * MAX_WARPS, sizeof(uint32_t));
    }
}

void undefined_clear(Exec *x)
{
    free(x->undefined_shared);
    free(x->undefined_local);
    x->undefined_shared = NULL;
    x->undefined_local = NULL;
}

void undefined_overwrite(Exec *x, uint64_t at, uint32_t bytes)
{
    if (x->undefined_shared) memset(x->undefined_shared + at, 0, bytes);
}

static int in_map(const Exec *x, const Place *p, const unsigned char *shared)
{
    uint64_t bytes = (uint64_t)p->bytes;
    if (p->space == SPACE_SHARED)
        return shared && p->at <= x->cta.shared_size && bytes <= x->cta.shared_size - p->at;
    return p->space == SPACE_LOCAL && x->undefined_local && p->at <= x->undefined_cap &&
           bytes <= x->undefined_cap - p->at;
}

/* Returns a bit for each undefined byte. */
static uint32_t global_bytes(const DevMem *m, const Place *p)
{
    uint64_t lo = p->at - ARENA_BASE;
    if (!m->n_undefined || lo >= m->bytes || (uint64_t)p->bytes > m->bytes - lo) return 0;
    return devmem_undefined(m, lo, p->bytes);
}

static void mark_global(DevMem *m, const Place *p, uint32_t mask)
{
    int at = devmem_find(m, p->at);
    Alloc *a = at >= 0 ? &m->allocs[at] : NULL;
    if (mask && a && a->undefined && (uint64_t)p->bytes <= a->bytes - (p->at - a->base))
        devmem_mark_undefined(m, a, p->at - ARENA_BASE, mask);
}

static uint32_t *local_mask(const Warp *w, uint64_t at)
{
    return &w->x->undefined_local[(size_t)w->index * w->x->undefined_cap + at];
}

uint32_t undefined_bytes(const Warp *w, const Place *place, int lane, int *kinds)
{
    uint32_t found = 0;
    Place here = *place, *p = &here;
    *kinds = 0;
    if (p->space == SPACE_GLOBAL) {
        found = global_bytes(w->x->mem, p);
        *kinds = found ? IN_MEMORY_UNDEFINED : 0;
        return found;
    }
    const unsigned char *shared = *shared_map(w->x, p);
    if (!in_map(w->x, p, shared)) return 0;
    for (int b = 0; b < p->bytes; b++) {
        int kind = p->space == SPACE_SHARED
                       ? shared[p->at + (uint64_t)b]
                       : (int)(*local_mask(w, p->at + (uint64_t)b) >> lane & 1);
        found |= (uint32_t) !!kind << b;
        *kinds |= kind;
    }
    return found;
}

void undefined_mark(Warp *w, const Place *place, int lane, uint32_t mask, int kind)
{
    Place here = *place, *p = &here;
    if (p->space == SPACE_GLOBAL) {
        mark_global(w->x->mem, p, mask);
        return;
    }
    unsigned char **shared = shared_map(w->x, p);
    if (mask) allocate_map(w->x, p->space, shared);
    if (!in_map(w->x, p, *shared)) return;
    for (int b = 0; b < p->bytes; b++) {
        uint32_t is = mask >> b & 1;
        if (p->space == SPACE_SHARED) {
            (*shared)[p->at + (uint64_t)b] = (unsigned char)(is ? kind : 0);
            continue;
        }
        uint32_t *lanes = local_mask(w, p->at + (uint64_t)b);
        *lanes = (*lanes & ~(1u << lane)) | is << lane;
    }
}
