/* Which block of a cluster accessed a word of shared memory last: for each word of a block CLUSTER_USES
 * marks of each block, clock << 4 | bytes. The races within a block are those of its own shadow
 * (memory/shadow_shared.c). */
#pragma GCC optimize("O3")
#include "eval/sim/memory/cluster.h"

#include <stdio.h>

#include "base/memory.h"
#include "eval/sim/memory/order.h"

enum { CLOCK_MAX = (1 << 28) - 4, SIGNAL_COST = 4 /* in thread-instructions */ };

/* ---- what is known of other blocks ---- */

static void raise_all(uint32_t *to, const uint32_t *from)
{
    for (int i = 0; i < CLUSTER_MAX; i++)
        if (from[i] > to[i]) to[i] = from[i];
}

void cluster_give(Cluster *k, uint32_t *seen)
{
    ClusterBlock *b = &k->blocks[k->actor];
    raise_all(seen, b->seen);
    if (b->clock > seen[k->actor]) seen[k->actor] = b->clock;
    if (b->clock < CLOCK_MAX) b->clock++;
}

void cluster_take(Cluster *k, const uint32_t *seen)
{
    raise_all(k->blocks[k->actor].seen, seen);
}

void cluster_fence(Exec *x)
{
    cluster_give(x->cluster, x->cluster->published);
}

void cluster_acquire(Exec *x)
{
    cluster_take(x->cluster, x->cluster->published);
    order_take_cluster(x);
}

static ClusterSignal *find_signal(Exec *x, uint32_t at)
{
    ClusterBlock *b = &x->cluster->blocks[x->cluster->current];
    exec_charge(x, b->n_signals / SIGNAL_COST);
    for (int i = 0; i < b->n_signals; i++)
        if (b->signals[i].at == at) return &b->signals[i];
    return NULL;
}

void cluster_signal(Exec *x, uint32_t at)
{
    Cluster *k = x->cluster;
    ClusterBlock *b = &k->blocks[k->current];
    ClusterSignal *s = find_signal(x, at);
    if (!s) {
        memory_room(b->signals, b->n_signals, b->cap_signals, 16);
        s = &b->signals[b->n_signals++];
        *s = (ClusterSignal){.at = at};
    }
    cluster_give(k, s->seen);
}

void cluster_await(Exec *x, uint32_t at)
{
    const ClusterSignal *s = find_signal(x, at);
    if (s) cluster_take(x->cluster, s->seen);
}

/* ---- accesses ---- */

/* A warp whose lanes have arrived at the barrier of the cluster is in the next phase. */
static uint32_t clock_of(const Warp *w, const ClusterBlock *b)
{
    uint32_t arrived = b->arrived[w->index];
    return b->clock + (uint32_t)(arrived && !(w->active & ~arrived));
}

/* What a warp does with shared memory of the cluster. */
typedef struct {
    const Inst *in;
    const Access *a; /* NULL: of a product, which the warp reads together */
    ClusterUse use;
    AccessChanged *changed; /* NULL: it conflicts in any case */
} Doing;

/* Reports a race with an access by the block `rank`. */
static int race(Warp *w, const Doing *o, uint64_t word, ClusterUse by, int rank)
{
    static const char *const verbs[] = {"writes", "reads", "changes"};
    const Cluster *k = w->x->cluster;
    int lane = o->a ? shadow_lane(o->a, 0, word) : __builtin_ctz(w->active);
    uint64_t at = o->a ? access_address(o->a, lane) : word * 4;
    char of[48] = "";
    if (k->actor != k->current) snprintf(of, sizeof of, " of block %d of its cluster", k->current);
    return exec_fail(w, o->in, lane, OUTCOME_RACE,
                     "%s shared memory%s at offset %lld, which block %d of the cluster %s with no "
                     "cluster barrier between",
                     verbs[o->use], of, (long long)at, rank, verbs[by]);
}

/* Does a lane's store change a word? */
static int does_change(const Warp *w, const Doing *o, uint64_t word)
{
    const Cta *c = &w->x->cta;
    EACH_LANE(shadow_lanes(o->a, 0, word), i)
    {
        uint64_t at = access_address(o->a, (int)i);
        if (!shared_has_value(c, at, at + (uint64_t)o->a->size) ||
            o->changed(o->a, w, (int)i, c->shared + at))
            return 1;
    }
    return 0;
}

/* Returns the kind of the access of another block that conflicts, and its rank; or -1. */
static int find_conflict(const Cluster *k, const uint32_t *marks, uint32_t bytes, ClusterUse use,
                         int *rank)
{
    const uint32_t *seen = k->blocks[k->actor].seen;
    for (int by = 0; by < CLUSTER_USES; by++) {
        if (by == (int)use && use != CLUSTER_WRITES) continue;
        for (int r = 0; r < k->n; r++) {
            uint32_t t = marks[by * k->n + r];
            if (t >> 4 <= seen[r] || r == k->actor || !(t & bytes)) continue;
            *rank = r;
            return by;
        }
    }
    return -1;
}

static int note_range(Warp *w, const Doing *o, ShadowRange range)
{
    Cluster *k = w->x->cluster;
    uint32_t clock = clock_of(w, &k->blocks[k->actor]);
    uint32_t *marks = k->blocks[k->current].marks;
    exec_charge(w->x, (int64_t)(range.hi - range.lo) / 4);
    for (uint64_t word = range.lo >> 2; word <= (range.hi - 1) >> 2; word++) {
        uint32_t bytes = shadow_bytes(word, range.lo, range.hi);
        uint32_t *of = marks + word * (uint64_t)(k->n * CLUSTER_USES),
                 *mine = of + (int)o->use * k->n + k->actor;
        int rank, by = find_conflict(k, of, bytes, o->use, &rank);
        if (by >= 0 && (!o->changed || does_change(w, o, word)))
            return race(w, o, word, (ClusterUse)by, rank);
        *mine = clock << 4 | bytes | (*mine >> 4 == clock ? *mine & TAG_BYTES : 0);
    }
    return 0;
}

int cluster_note(Warp *w, const Access *a, ClusterUse use, AccessChanged *changed)
{
    const Cluster *k = w->x->cluster;
    const Doing o = {a->in, a, use, changed};
    for (int i = 0; i < a->p->n_ranges; i++)
        if (note_range(w, &o, shadow_range(a, i, 0))) return -1;
    return k->actor != k->current;
}

int cluster_note_product(Warp *w, const Inst *in, uint32_t at, uint32_t bytes)
{
    return note_range(w, &(Doing){.in = in, .use = CLUSTER_READS}, (ShadowRange){at, at + bytes});
}

void cluster_lend(Exec *x, uint64_t at, uint32_t bytes, int rank)
{
    Cluster *k = x->cluster;
    uint32_t *marks = k->blocks[k->current].marks;
    for (uint64_t word = at >> 2; word < (at + bytes) >> 2; word++)
        marks[word * (uint64_t)(k->n * CLUSTER_USES) + (uint64_t)(CLUSTER_READS * k->n + rank)] =
            k->blocks[rank].clock << 4 | TAG_BYTES;
    k->blocks[k->current].touched[rank] = k->blocks[rank].clock;
}

int cluster_check_exit(Warp *w, const Inst *in)
{
    Cluster *k = w->x->cluster;
    ClusterBlock *b = &k->blocks[k->actor];
    for (int r = 0; r < k->n; r++)
        if (b->touched[r] > b->seen[r] && b->touched[r] > k->met[r])
            return exec_fail(w, in, __builtin_ctz(w->active), OUTCOME_RACE,
                             "exits while block %d of its cluster may access its shared memory: a "
                             "cluster barrier must come before the exit",
                             r);
    b->has_exited = 1;
    return 0;
}
