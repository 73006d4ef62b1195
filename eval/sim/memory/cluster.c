/* Blocks in and out of Exec. A load from another block's shared memory takes about 180 cycles on an
 * H100 (Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via
 * Microbenchmarking, 2024); what goes beyond the block's own shared memory is added to the warp's
 * chain, once for all loads of a pass over a block of code. */
#include "eval/sim/memory/cluster.h"

#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/memory/doubts.h"
#include "eval/sim/memory/landed.h"
#include "eval/sim/memory/order.h"

enum {
    FAR_CYCLES = 156,        /* 180 without the 24 of shared memory */
    ENTER_COST = 60,         /* in thread-instructions */
    CLOCK_RENEWED = 1 << 27, /* clocks have 28 bits */
};

/* ---- the current block ---- */

static void change(Exec *x, int rank)
{
    Cluster *k = x->cluster;
    if (rank == k->current) return;
    block_save(x, &k->blocks[k->current].state);
    block_restore(x, &k->blocks[rank].state);
    k->current = rank;
    k->told.current = (uint64_t)rank;
}

void cluster_select(Exec *x, int rank)
{
    change(x, rank);
    x->cluster->actor = rank;
    doubts_change_block(x);
}

/* ---- launches ---- */

void cluster_prepare(Exec *x, const uint32_t of[3])
{
    uint32_t n = 1;
    for (int i = 0; i < 3; i++) n *= of[i] ? of[i] : 1;
    if (n < 2 || n > CLUSTER_MAX) return;
    if (!x->clusters) x->clusters = memory_alloc(sizeof *x->clusters);
    Cluster *k = x->cluster = x->clusters;
    for (int i = 0; i < 3; i++) k->of[i] = of[i] ? of[i] : 1;
    k->n = (int)n;
    k->current = k->actor = 0;
    for (int r = 0; r < CLUSTER_MAX; r++) k->blocks[r].state.has_pending = 0;
}

void cluster_unload(Exec *x)
{
    if (!x->cluster) return;
    change(x, 0);
    x->cluster = NULL;
    x->keeps_pending = 0;
}

void cluster_release(Exec *x)
{
    Cluster *k = x->clusters;
    if (!k) return;
    cluster_unload(x);
    x->cluster = k;
    for (int r = 0; r < CLUSTER_MAX; r++) {
        change(x, r);
        free(k->blocks[r].marks);
        free(k->blocks[r].signals);
        if (!r) continue;
        block_release(x);
    }
    cluster_unload(x);
    told_release(&k->told);
    free(k);
    x->clusters = NULL;
}

static void fit_marks(Exec *x, ClusterBlock *b)
{
    size_t n = ((size_t)x->cta.shared_size / 4 + 1) * (size_t)x->cluster->n * CLUSTER_USES;
    if (n <= b->n_marks) return;
    free(b->marks);
    b->marks = memory_array(n, sizeof *b->marks);
    b->n_marks = n;
}

/* Clocks grow from cluster to cluster, so that the marks of earlier ones are always seen. */
void cluster_start(Exec *x)
{
    Cluster *k = x->cluster;
    uint32_t top = 0;
    for (int r = 0; r < CLUSTER_MAX; r++)
        if (k->blocks[r].clock > top) top = k->blocks[r].clock;
    for (int r = 0; r < CLUSTER_MAX && top > CLOCK_RENEWED; r++) {
        ClusterBlock *b = &k->blocks[r];
        if (b->marks) memset(b->marks, 0, b->n_marks * sizeof *b->marks);
    }
    if (top > CLOCK_RENEWED) top = 0;
    k->base = top + 2;
    k->live = k->arrived = 0;
    k->arriving = k->passed = (WarpPath){0};
    told_begin(&k->told, (uint64_t)k->n);
    order_start_cluster(x);
    x->keeps_pending = 1;
    for (int r = 0; r < k->n; r++) {
        ClusterBlock *b = &k->blocks[r];
        change(x, r);
        fit_marks(x, b);
        b->clock = k->base;
        for (int i = 0; i < CLUSTER_MAX; i++) b->seen[i] = k->base - 1;
        memset(b->touched, 0, sizeof b->touched);
        memset(b->arrived, 0, sizeof b->arrived);
        memset(b->passed, 0, sizeof b->passed);
        memset(b->charged, 0, sizeof b->charged);
        b->has_met = b->has_exited = b->n_signals = 0;
        b->owing = 0;
        memset(b->stored, 0, sizeof b->stored);
        b->is_relaxed = 1;
        b->arrivals = 0;
        k->published[r] = k->joined[r] = k->met[r] = k->base - 1;
        k->live += x->cta.live_threads;
        x->has_pending = 0;
    }
}

uint64_t cluster_block(const Exec *x, uint64_t cluster, int rank)
{
    const Cluster *k = x->cluster;
    uint64_t block = 0, stride = 1, rest = (uint64_t)rank;
    for (int i = 0; i < 3; i++) {
        uint64_t n = x->grid[i] / k->of[i];
        block += (cluster % n * k->of[i] + rest % k->of[i]) * stride;
        cluster /= n;
        rest /= k->of[i];
        stride *= x->grid[i];
    }
    return block;
}

int cluster_has(const Exec *x, uint64_t block)
{
    const uint32_t *of = x->cluster->of;
    uint64_t mine = x->cta.linear;
    for (int i = 0; i < 3; i++) {
        if (mine % x->grid[i] / of[i] != block % x->grid[i] / of[i]) return 0;
        mine /= x->grid[i];
        block /= x->grid[i];
    }
    return 1;
}

/* ---- accesses to another block ---- */

int cluster_rank(const Cluster *k, uint64_t at)
{
    uint64_t rank = at >> CLUSTER_SHIFT;
    if (!rank) return k->actor;
    return rank <= (uint64_t)k->n ? (int)rank - 1 : -1;
}

static int is_store(const Warp *w, const Inst *in)
{
    const PtxInst *source = exec_source(w, in);
    return source && !strcmp(source->op, "st");
}

void cluster_await_stores(Warp *w)
{
    ClusterBlock *me = &w->x->cluster->blocks[w->x->cluster->actor];
    if (me->owing >> w->index & 1) w->chain += FAR_CYCLES;
    me->owing &= ~(1u << w->index);
}

int cluster_enter(Warp *w, const Inst *in, int lane, int rank)
{
    Exec *x = w->x;
    Cluster *k = x->cluster;
    ClusterBlock *me = &k->blocks[k->actor], *home = &k->blocks[rank];
    exec_charge(x, ENTER_COST);
    if (home->has_exited)
        return exec_fail(w, in, lane, OUTCOME_RACE,
                         "accesses shared memory of block %d of its cluster, which has exited: a "
                         "cluster barrier must come before its exit",
                         rank);
    if (!me->has_met && me->seen[rank] < k->base)
        return exec_fail(
            w, in, lane, OUTCOME_RACE,
            "accesses shared memory of block %d of its cluster with no cluster barrier "
            "before, without which that block may not have started",
            rank);
    home->touched[k->actor] = me->clock;
    if (is_store(w, in)) {
        me->owing |= 1u << w->index;
    } else if (me->charged[w->index] != w->insts) {
        me->charged[w->index] = w->insts;
        w->chain += FAR_CYCLES;
    }
    uint32_t id[3];
    memcpy(id, x->cta.id, sizeof id);
    change(x, rank);
    memcpy(x->cta.id, id, sizeof id); /* a fault names the actor's block */
    return 0;
}

void cluster_leave(Exec *x)
{
    Cluster *k = x->cluster;
    for (int i = 0; i < 3; i++) { /* both have the same place among the clusters */
        uint32_t rank = (uint32_t)k->current, of = k->of[i];
        for (int j = 0; j < i; j++) rank /= k->of[j];
        x->cta.id[i] = x->cta.id[i] / of * of + rank % of;
    }
    change(x, k->actor);
}

/* An instruction that says shared or shared::cta reaches the block's own memory alone. */
static int is_of_cluster(const Warp *w, const Access *a)
{
    const PtxInst *in = exec_source(w, a->in);
    if (a->mo->space == SPACE_GENERIC) return 1;
    for (int i = 0; in && i < in->n_mods; i++)
        if (!strcmp(in->mods[i], "shared::cluster")) return 1;
    return 0;
}

/* Costs in hundredths of a load's byte, and the bytes that take as long as a bank conflict (an H200,
 * 2026-11-29 and 2026-11-30: the patterns of dsmem in tests/bench/rates). Stores take 0.9 of what loads
 * do, and count as much. One to the addresses of the one before is merged with it. */
enum { USUAL = 100, ADDED = 250, MERGED = 29 };
enum { LOAD_CONFLICT_BYTES = 48, STORE_CONFLICT_BYTES = 27 };

void cluster_count_store(Exec *x, uint64_t bytes)
{
    x->counts.far_shared_bytes += bytes;
}

static void count_far(Warp *w, const Access *a)
{
    ClusterBlock *me = &w->x->cluster->blocks[w->x->cluster->actor];
    const int adds = a->mo->kind == MEM_ATOM || a->mo->kind == MEM_RED, stores = is_store(w, a->in);
    const uint64_t to = stores ? a->base << CLUSTER_SHIFT | (uint32_t)a->p->max << 1 | 1 : 0,
                   each = stores ? STORE_CONFLICT_BYTES : LOAD_CONFLICT_BYTES;
    const int merged = to && me->stored[w->index] == to;
    uint64_t bytes = (uint64_t)__builtin_popcount(a->mask) * (uint64_t)a->size,
             conflicts = each * (uint64_t)a->p->wavefronts;
    me->stored[w->index] = to;
    bytes = bytes * (uint64_t)(adds ? ADDED : merged ? MERGED : USUAL) / USUAL;
    w->x->counts.far_shared_bytes += merged || bytes > conflicts ? bytes : conflicts;
}

int cluster_access(Warp *w, Access *a, int (*once)(Warp *, Access *))
{
    Exec *x = w->x;
    Cluster *k = x->cluster;
    uint64_t lo = a->base + (uint64_t)(int64_t)a->p->min,
             hi = a->base + (uint64_t)(int64_t)a->p->max;
    int rank = cluster_rank(k, lo);
    if (lo >> CLUSTER_SHIFT != hi >> CLUSTER_SHIFT && a->mask & (a->mask - 1)) return 1;
    if (a->mo->order != ORDER_WEAK) cluster_take(k, k->published), landed_meet(w);
    if (rank < 0) return once(w, a);
    a->base -= lo >> CLUSTER_SHIFT << CLUSTER_SHIFT;
    if (rank == k->current) return once(w, a);
    if (!is_of_cluster(w, a))
        return exec_fail(
            w, a->in, a->first, OUTCOME_OUT_OF_BOUNDS,
            "accesses shared memory of block %d of its cluster with an instruction for "
            "its own: use shared::cluster",
            rank);
    if (cluster_enter(w, a->in, a->first, rank)) return -1;
    count_far(w, a);
    int r = once(w, a);
    cluster_leave(x);
    return r;
}
