/* The shadow of global memory. A tag is block tag << 32 | phase << 10 | warp << 4 | bytes. Block
 * tags grow and are never used twice, so tags below the launch's floor are of earlier launches. The
 * floor itself as a reader's block tag means "several blocks".
 *
 * A block takes a new tag at each fence, so that a tag says which fences come after an access. What
 * another block did is ordered when it knows of such a fence (order.h). In a cluster, whose barrier is a
 * fence, the accesses before a fence are released to all: a block that has since executed an atomic, a
 * volatile access or a fence may meet them. A plain access without such an order is a race. */
#pragma GCC optimize("O3")
#include "eval/sim/memory/shadow.h"

#include <stdio.h>

#include "eval/sim/memory/cluster.h"
#include "eval/sim/memory/cooperative.h"
#include "eval/sim/memory/doubts.h"
#include "eval/sim/memory/order.h"
#include "eval/sim/memory/undefined.h"

/* Costs in thread-instructions: a look at each lane; contents that are drawn; each further range of a
 * store; a lane that stores where another block or warp has been. */
enum { UNDEFINED_COST = 256, DRAW_COST = 4000, STORE_RANGE_COST = 100, STORE_LANE_COST = 60 };

static inline uint64_t my_tag(const Warp *w)
{
    const Cta *c = &w->x->cta;
    return order_position(c) << TAG_PHASE_SHIFT | (uint64_t)w->index << TAG_WARP_SHIFT;
}

typedef enum {
    CONFLICT_NONE,
    CONFLICT_WARP, /* with another warp of the block */
    CONFLICT_BLOCK
} Conflict;

/* Is what another block did under a tag ordered before what this warp does? */
static int is_ordered(Warp *w, uint64_t tag)
{
    const Exec *x = w->x;
    uint32_t i = (uint32_t)(tag >> 32) - x->mem->tag_floor;
    if (x->cluster && cluster_has(x, x->mem->tag_block[i]))
        return x->mem->tag_released[i] && x->cta.acquired;
    return order_knows(w, tag);
}

/* Does an access of this warp to some bytes of a word conflict with the word's tag? */
static Conflict conflict(Warp *w, uint64_t tag, uint32_t bytes)
{
    const DevMem *mem = w->x->mem;
    const Cta *c = &w->x->cta;
    uint32_t block_tag = (uint32_t)(tag >> 32);
    if (block_tag < mem->tag_floor || !(tag & bytes)) return CONFLICT_NONE;
    if (block_tag == mem->tag_floor) /* several blocks */
        return c->acquired ? CONFLICT_NONE : CONFLICT_BLOCK;
    uint32_t i = block_tag - mem->tag_floor;
    if (mem->tag_block[i] != (uint32_t)c->linear)
        return is_ordered(w, tag) ? CONFLICT_NONE : CONFLICT_BLOCK;
    uint64_t mine = my_tag(w);
    if ((tag ^ mine) >> TAG_PHASE_SHIFT & 0x3fffff ||
        (tag >> TAG_WARP_SHIFT & 63) == (uint64_t)w->index)
        return CONFLICT_NONE;
    return block_tag >= c->fenced_tag || !c->acquired ? CONFLICT_WARP : CONFLICT_NONE;
}

/* The access before that left a tag. */
typedef struct {
    uint64_t tag;
    int wrote;
    Conflict kind;
} Earlier;

/* Reports a race of a lane with an earlier access. */
static int race_fault(Warp *w, const Access *a, int lane, int is_write, Earlier e)
{
    const DevMem *mem = w->x->mem;
    const Alloc *al = &mem->allocs[a->mo->last_alloc];
    unsigned long long offset = access_address(a, lane) - al->base;
    uint32_t block_tag = (uint32_t)(e.tag >> 32);
    char who[48] = "threads of other blocks";
    if (block_tag != mem->tag_floor && e.kind == CONFLICT_BLOCK)
        snprintf(who, sizeof who, "block %u", mem->tag_block[block_tag - mem->tag_floor]);
    else if (e.kind == CONFLICT_WARP)
        snprintf(who, sizeof who, "another warp of the block");
    return exec_fail(
        w, a->in, lane, OUTCOME_RACE,
        "%s %s at offset %llu, which %s %s in the same launch with no order between%s",
        is_write ? "writes" : "reads", al->label, offset, who, e.wrote ? "also writes" : "reads",
        e.kind == CONFLICT_BLOCK && w->x->cta.acquired
            ? ": it takes __threadfence() before the flag or atomic that publishes it, and "
              "an acquire, both of a scope that holds the two blocks"
            : "");
}

/* An undefined value that is read is a fault, unless the load's registers are followed. */
static int load_undefined(Warp *w, const Access *a)
{
    const DevMem *mem = w->x->mem;
    const Alloc *al = &mem->allocs[a->mo->last_alloc];
    exec_charge(w->x, UNDEFINED_COST);
    EACH_LANE(a->mask, i)
    {
        uint64_t at = access_address(a, (int)i);
        uint32_t bytes = 0;
        for (int b = 0; b < a->size; b += 32)
            bytes |= devmem_undefined(mem, at + (uint64_t)b - ARENA_BASE, a->size - b);
        if (!bytes || undefined_is_loaded(w, a->in)) continue;
        const PtxInst *p = exec_source(w, a->in);
        Fault *f = w->x->fault;
        size_t used = strlen(al->undefined->message);
        *f = *al->undefined;
        snprintf(f->message + used, sizeof f->message - used, ", and line %d reads it there",
                 p ? p->line : 0);
        w->x->faulted = 1;
        return -1;
    }
    return 0;
}

static int check_written(Warp *w, const Access *a, ShadowRange range)
{
    DevMem *mem = w->x->mem;
    if (devmem_is_written(mem, range.lo, range.hi)) return 0;
    const Alloc *al = &mem->allocs[a->mo->last_alloc];
    if (al->undefined && load_undefined(w, a)) return -1;
    if (al->fill) exec_charge(w->x, DRAW_COST);
    if (!devmem_supply(mem, al, range.lo, range.hi)) return 0;
    EACH_LANE(a->mask, i)
    {
        uint64_t at = access_address(a, (int)i), lo = at - ARENA_BASE;
        uint32_t bytes = devmem_unwritten(mem, lo, a->size),
                 never = bytes & ~devmem_undefined(mem, lo, a->size);
        if (a->size > 32 ? devmem_is_written(mem, lo, lo + (uint64_t)a->size) : !never) continue;
        int is_partial = al->scratch && a->size < 32 && bytes != (1u << a->size) - 1;
        if (is_partial && w->partial_load && !doubt_bytes(w, a->in, (int)i, never)) continue;
        exec_fault(w, a->in, (int)i, OUTCOME_OUT_OF_BOUNDS,
                   "reads %d bytes at offset %llu of %s before anything was written there", a->size,
                   (unsigned long long)(at - al->base), al->label);
        if (w->x->faulted) cooperative_read_early(w->x, lo, lo + (uint64_t)a->size);
        if (!is_partial || doubt_bytes(w, a->in, (int)i, never)) return -1;
    }
    return 0;
}

static void note_reader(DevMem *mem, const Cta *c, uint64_t word, uint64_t mine, uint32_t bytes)
{
    uint64_t r = mem->reader[word];
    uint32_t tag = (uint32_t)(r >> 32);
    if (tag < mem->tag_floor)
        mem->reader[word] = mine | bytes;
    else if (tag == mem->tag_floor)
        mem->reader[word] = r | bytes;
    else if (mem->tag_block[tag - mem->tag_floor] != (uint32_t)c->linear)
        mem->reader[word] = (uint64_t)mem->tag_floor << 32 | (r & TAG_BYTES) | bytes;
    else if (!((r ^ mine) >> TAG_PHASE_SHIFT) && (r ^ mine) >> TAG_WARP_SHIFT)
        mem->reader[word] =
            (mine & ~(uint64_t)TAG_WARP_MASK) | TAG_SEVERAL_WARPS | (r & TAG_BYTES) | bytes;
    else
        mem->reader[word] = shadow_add_bytes(r, mine, bytes);
}

/* The slow path of a load: word by word, with the bytes that are touched. */
static int load_words(Warp *w, const Access *a, ShadowRange range, uint64_t mine)
{
    DevMem *mem = w->x->mem;
    for (uint64_t word = range.lo >> 2; word <= (range.hi - 1) >> 2; word++) {
        uint32_t bytes = shadow_bytes(word, range.lo, range.hi);
        Conflict kind = conflict(w, mem->writer[word], bytes);
        if (kind)
            return race_fault(w, a, shadow_lane(a, ARENA_BASE, word), 0,
                              (Earlier){mem->writer[word], 1, kind});
        note_reader(mem, &w->x->cta, word, mine, bytes);
    }
    return 0;
}

static void trace(AccessTrace *t, const Warp *w, const Access *a, TraceKind kind)
{
    uint64_t unit = w->x->cta.linear * TRACE_UNITS, size = (uint64_t)a->size;
    if (t->by == TRACE_THREADS) {
        unit += (uint64_t)w->index * LANES;
        EACH_LANE(a->mask, i)
        trace_add(t, (TraceEntry){unit + i, access_address(a, (int)i), (uint32_t)size, kind});
        return;
    }
    for (int i = 0; i < a->p->n_ranges; i++) {
        ShadowRange r = shadow_range(a, i, 0);
        if (t->by == TRACE_BLOCKS)
            ranges_add(kind == TRACE_WRITE ? &t->writes : &t->reads, r.lo, r.hi);
        else
            trace_add(t,
                      (TraceEntry){unit + (uint64_t)w->index, r.lo, (uint32_t)(r.hi - r.lo), kind});
    }
}

/* A strong load is no race with a weak store of another block that a fence follows, or that publishes itself
 * behind one, as a flag does. Without either the store may never be seen. */
static int check_strong_load(Warp *w, const Access *a, ShadowRange range)
{
    const DevMem *mem = w->x->mem;
    for (uint64_t word = range.lo >> 2; word <= (range.hi - 1) >> 2; word++) {
        uint64_t t = mem->writer[word];
        uint32_t tag = (uint32_t)(t >> 32), k = tag - mem->tag_floor;
        if (tag <= mem->tag_floor || !(t & shadow_bytes(word, range.lo, range.hi)) ||
            mem->tag_block[k] == (uint32_t)w->x->cta.linear || mem->tag_released[k] ||
            mem->tag_order[k] || is_ordered(w, t))
            continue;
        return race_fault(w, a, shadow_lane(a, ARENA_BASE, word), 0,
                          (Earlier){t, 1, CONFLICT_BLOCK});
    }
    return 0;
}

int global_check_load(Warp *w, Access *a)
{
    DevMem *mem = w->x->mem;
    const Alloc *al = &mem->allocs[a->mo->last_alloc];
    uint64_t mine = my_tag(w), floor = (uint64_t)mem->tag_floor << 32, one = mine | TAG_BYTES;
    int find_races = !al->read_only && a->mo->order == ORDER_WEAK,
        strong = !al->read_only && a->mo->order != ORDER_WEAK;
    if (mem->trace && (!al->read_only || mem->trace->given)) trace(mem->trace, w, a, TRACE_READ);
    if (al->all_written && !find_races && !strong) return 0;
    if (find_races) {
        w->x->cta.touched = 1;
        if (w->x->graph) order_glance(w, a);
    }
    for (int i = 0; i < a->p->n_ranges; i++) {
        ShadowRange range = shadow_range(a, i, ARENA_BASE);
        if (!al->all_written && check_written(w, a, range)) return -1;
        if (strong && !al->steady && check_strong_load(w, a, range)) return -1;
        if (!find_races || al->steady) continue;
        uint64_t slow = (range.lo | range.hi) & 3;
        const uint64_t *t = mem->writer + (range.lo >> 2);
        uint64_t *r = mem->reader + (range.lo >> 2);
        int n = (int)((range.hi - range.lo) >> 2);
        for (int k = 0; k < n; k++)
            slow |= (uint64_t)(t[k] >= floor && (t[k] | 15) != one) |
                    (uint64_t)(r[k] >= floor && r[k] != one);
        if (slow) {
            if (load_words(w, a, range, mine)) return -1;
            continue;
        }
        for (int k = 0; k < n; k++) r[k] = one;
    }
    return 0;
}

int global_check_read_only(Warp *w, const Access *a)
{
    const DevMem *mem = w->x->mem;
    uint64_t floor = (uint64_t)mem->tag_floor << 32;
    for (int i = 0; i < a->p->n_ranges; i++) {
        ShadowRange range = shadow_range(a, i, ARENA_BASE);
        for (uint64_t word = range.lo >> 2; word <= (range.hi - 1) >> 2; word++) {
            uint64_t t = mem->writer[word];
            if (t < floor || !(t & shadow_bytes(word, range.lo, range.hi))) continue;
            int lane = shadow_lane(a, ARENA_BASE, word);
            const Alloc *al = &mem->allocs[a->mo->last_alloc];
            return exec_fail(w, a->in, lane, OUTCOME_RACE,
                             "reads %s at offset %llu through the read-only cache (__ldg, or const "
                             "__restrict__) after a write in the same launch",
                             al->label, (unsigned long long)(access_address(a, lane) - al->base));
        }
    }
    return 0;
}

/* Checks one lane's store to words that others touched. It is a race only when bytes change. */
static int store_lane(Warp *w, const Access *a, int lane, AccessChanged *changed)
{
    DevMem *mem = w->x->mem;
    uint64_t lo = access_address(a, lane) - ARENA_BASE, hi = lo + (uint64_t)a->size;
    for (uint64_t word = lo >> 2; word <= (hi - 1) >> 2; word++) {
        uint32_t bytes = shadow_bytes(word, lo, hi);
        uint64_t t = mem->writer[word], r = mem->reader[word];
        Conflict writer = conflict(w, t, bytes), reader = conflict(w, r, bytes);
        if ((writer || reader) && changed(a, w, lane, mem->data + lo))
            return race_fault(w, a, lane, 1,
                              writer ? (Earlier){t, 1, writer} : (Earlier){r, 0, reader});
    }
    return 0;
}

static void mark_writer(DevMem *mem, ShadowRange range, uint64_t mine)
{
    uint64_t *t = mem->writer + (range.lo >> 2);
    int n = (int)((range.hi - range.lo) >> 2);
    if (!((range.lo | range.hi) & 3)) {
        for (int k = 0; k < n; k++) t[k] = mine | TAG_BYTES;
        return;
    }
    for (uint64_t word = range.lo >> 2; word <= (range.hi - 1) >> 2; word++)
        mem->writer[word] =
            shadow_add_bytes(mem->writer[word], mine, shadow_bytes(word, range.lo, range.hi));
}

int global_check_store(Warp *w, Access *a, AccessChanged *changed)
{
    DevMem *mem = w->x->mem;
    const Alloc *al = &mem->allocs[a->mo->last_alloc];
    uint64_t mine = my_tag(w), floor = (uint64_t)mem->tag_floor << 32, one = mine | TAG_BYTES;
    int ordered = a->mo->order != ORDER_WEAK;
    uint64_t suspicious = 0;
    if (mem->trace) trace(mem->trace, w, a, TRACE_WRITE);
    for (int i = 0; i < a->p->n_ranges && !ordered; i++) {
        ShadowRange range = shadow_range(a, i, ARENA_BASE);
        int n = (int)(((range.hi - 1) >> 2) - (range.lo >> 2)) + 1;
        const uint64_t *t = mem->writer + (range.lo >> 2), *r = mem->reader + (range.lo >> 2);
        for (int k = 0; k < n; k++)
            suspicious |= (uint64_t)(t[k] >= floor && (t[k] | 15) != one) |
                          (uint64_t)(r[k] >= floor && (r[k] | 15) != one);
    }
    exec_charge(w->x, STORE_RANGE_COST * (a->p->n_ranges - 1));
    if (suspicious) {
        exec_charge(w->x, STORE_LANE_COST * __builtin_popcount(a->mask));
        EACH_LANE(a->mask, i)
        {
            if (store_lane(w, a, (int)i, changed)) return -1;
        }
    }
    for (int i = 0; i < a->p->n_ranges; i++) {
        ShadowRange range = shadow_range(a, i, ARENA_BASE);
        if (!ordered) mark_writer(mem, range, mine);
        if (!al->all_written) devmem_mark_written(mem, range.lo, range.hi);
    }
    w->x->cta.touched = w->x->cta.stored = 1;
    return 0;
}

/* An atomic is ordered after a released write by another block, and orders the block itself. */
int global_check_atomic(Warp *w, Access *a)
{
    DevMem *mem = w->x->mem;
    const Alloc *al = &mem->allocs[a->mo->last_alloc];
    exec_acquire(w->x);
    if (mem->trace) trace(mem->trace, w, a, TRACE_ATOMIC);
    for (int i = 0; i < a->p->n_ranges; i++) {
        ShadowRange range = shadow_range(a, i, ARENA_BASE);
        if (!al->all_written && check_written(w, a, range)) return -1;
        if (mem->assume && !al->all_written) devmem_mark_written(mem, range.lo, range.hi);
        for (uint64_t word = range.lo >> 2; word <= (range.hi - 1) >> 2; word++) {
            uint64_t t = mem->writer[word];
            uint32_t block_tag = (uint32_t)(t >> 32);
            if (block_tag < mem->tag_floor) continue;
            uint32_t k = block_tag - mem->tag_floor;
            Conflict kind = mem->tag_block[k] == (uint32_t)w->x->cta.linear ? conflict(w, t, 15)
                            : mem->tag_released[k] || is_ordered(w, t)      ? CONFLICT_NONE
                                                                            : CONFLICT_BLOCK;
            if (kind)
                return race_fault(w, a, shadow_lane(a, ARENA_BASE, word), 1, (Earlier){t, 1, kind});
        }
    }
    return 0;
}

/* What the block did under its tag is released, and it takes another one. */
static void change_tag(Exec *x, uint32_t node)
{
    Cta *c = &x->cta;
    x->mem->tag_released[c->tag - x->mem->tag_floor] = 1;
    c->tag = devmem_take_tag(x->mem, (uint32_t)c->linear);
    x->mem->tag_order[c->tag - x->mem->tag_floor] = node;
    if (c->stored) c->fenced_tag = c->tag;
    c->touched = c->stored = 0;
}

void global_fence(Warp *w, int scope, int kind)
{
    Exec *x = w->x;
    const Cta *c = &x->cta;
    uint64_t first = (uint64_t)c->tag << (32 - TAG_PHASE_SHIFT),
             own = c->touched ? order_position(c) : first - 1;
    if (scope == SCOPE_CLUSTER && !x->cluster) scope = SCOPE_BLOCK;
    if (scope == SCOPE_BLOCK) {
        x->counts.block_fences++;
        order_fence(w, scope, kind, order_position(c));
        return;
    }
    exec_acquire(x);
    if (x->cluster) cluster_fence(x);
    x->counts.fences++;
    uint32_t node = order_fence(w, scope, kind, own);
    if (c->touched && kind & FENCE_RELEASES) change_tag(x, node);
}

void global_release(Exec *x)
{
    order_join_cluster(x);
    change_tag(x, 0);
}
