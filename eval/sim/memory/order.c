/* Who acquires by an atomic without an order, or a volatile load, knows at once what it has observed, as
 * CUDA's own samples do; a relaxed or a weak load needs a fence behind it. */
#include "eval/sim/memory/order.h"
#include "eval/sim/memory/landed.h"

#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/memory/block_waits.h"
#include "eval/sim/memory/cluster.h"
#include "eval/sim/memory/fences.h"
#include "eval/sim/memory/order_graph.h"

enum { NODE_COST = 40, PLACE_COST = 1 /* in thread-instructions */ };

struct BlockOrder {
    int used; /* by the running block */
    uint32_t serial;
    Fences fences;                /* of devices */
    uint64_t flagged[MAX_WARPS];  /* up to where a fence or release of any scope came after */
    uint32_t known[MAX_WARPS];    /* nodes that the warp comes after, ... */
    uint32_t seen[MAX_WARPS];     /* ... that it does after its next fence, ... */
    uint32_t released[MAX_WARPS]; /* ... and of what its next strong store releases; 0: not made */
    uint32_t flags;               /* what warps knew that have executed a fence or release */
    uint32_t cluster;             /* what it has taken of its cluster */
    uint32_t changed;             /* warps that know or have seen more since the last barrier */
};

/* ---- launches and blocks ---- */

void order_start_launch(Exec *x)
{
    if (x->graph) order_graph_clear(x->graph, x->cta.n_warps);
}

void order_start_block(Exec *x)
{
    if (x->order && x->order->used) memset(x->order, 0, sizeof *x->order);
}

void order_start_cluster(Exec *x)
{
    if (x->graph) x->graph->cluster = 0;
}

void order_release_block(Exec *x)
{
    free(x->order);
    x->order = NULL;
}

void order_release(Exec *x)
{
    if (x->graph) order_graph_free(x->graph);
    x->graph = NULL;
}

static OrderGraph *graph_of(Exec *x)
{
    if (x->graph) return x->graph;
    x->graph = memory_alloc(sizeof *x->graph);
    order_graph_clear(x->graph, x->cta.n_warps);
    return x->graph;
}

static BlockOrder *order_of(Exec *x)
{
    OrderGraph *g = graph_of(x);
    if (!x->order) x->order = memory_alloc(sizeof *x->order);
    if (!x->order->used) {
        x->order->used = 1;
        x->order->serial = ++g->serial;
    }
    return x->order;
}

/* ---- what a warp knows ---- */

static void learn(Exec *x, int warp, uint32_t *to, uint32_t node)
{
    BlockOrder *o = x->order;
    uint32_t all = order_join(x->graph, *to, node);
    if (all == *to) return;
    exec_charge(x, NODE_COST);
    *to = all;
    o->changed |= 1u << warp;
    o->released[warp] = 0;
}

/* The warps of a block that have taken a node, as something that they know, or have seen. */
static uint32_t *takers(OrderGraph *g, uint32_t node, uint32_t serial, int is_known)
{
    OrderNode *n = &g->nodes[node];
    if (n->serial != serial) n->known = n->seen = 0;
    n->serial = serial;
    return is_known ? &n->known : &n->seen;
}

/* The node of what the warp's fences cover, with what it knows; 0: nothing. */
static uint32_t released_by(Exec *x, int warp)
{
    BlockOrder *o = x->order;
    const uint64_t *covered = fences_of(&o->fences, warp);
    uint64_t any = 0;
    if (o->released[warp]) return o->released[warp];
    for (int i = 0; i < x->cta.n_warps; i++) any |= covered[i];
    if (!any) return 0;
    exec_charge(x, NODE_COST);
    uint32_t node = order_node(x->graph, x->cta.linear, covered, o->known[warp]);
    if (node) *takers(x->graph, node, o->serial, 1) |= 1u << warp; /* it comes after itself */
    return o->released[warp] = node;
}

uint32_t order_fence(Warp *w, int scope, int kind, uint64_t own)
{
    Exec *x = w->x;
    BlockOrder *o = order_of(x);
    int me = w->index;
    if (kind & FENCE_ACQUIRES && scope == SCOPE_DEVICE && o->seen[me]) {
        learn(x, me, &o->known[me], o->seen[me]);
        o->seen[me] = 0;
    }
    if (!(kind & FENCE_RELEASES)) return 0;
    if (o->known[me]) o->flags = order_join(x->graph, o->flags, o->known[me]);
    if (scope == SCOPE_DEVICE) {
        uint64_t others[MAX_WARPS];
        for (int i = 0; i < MAX_WARPS; i++)
            others[i] = o->flagged[i] > x->cta.passed ? o->flagged[i] : x->cta.passed;
        fences_add(&o->fences, me, own, others);
        o->released[me] = 0;
    }
    o->flagged[me] = own;
    if (scope == SCOPE_BLOCK) return 0;
    uint32_t node = released_by(x, me);
    if (x->cluster) x->graph->cluster = order_join(x->graph, x->graph->cluster, node);
    return scope == SCOPE_DEVICE ? node : 0;
}

/* Gives all warps what one of them has. */
static void share(Exec *x, uint32_t *each)
{
    uint32_t all = 0;
    for (int i = 0; i < x->cta.n_warps; i++) all = order_join(x->graph, all, each[i]);
    for (int i = 0; i < x->cta.n_warps; i++) each[i] = all;
}

void order_barrier(Exec *x)
{
    BlockOrder *o = x->order;
    if (!o->used || !(o->changed | o->fences.since)) return;
    fences_barrier(&o->fences);
    share(x, o->known);
    share(x, o->seen);
    o->changed = 0;
    memset(o->released, 0, sizeof o->released);
}

void order_join_cluster(Exec *x)
{
    BlockOrder *o = order_of(x);
    uint64_t all[MAX_WARPS];
    for (int i = 0; i < MAX_WARPS; i++) all[i] = x->cta.passed;
    uint32_t node = order_node(x->graph, x->cta.linear, all, o->known[0]);
    x->graph->cluster = order_join(x->graph, x->graph->cluster, node);
}

void order_take_cluster(Exec *x)
{
    if (!x->graph || !x->graph->cluster) return;
    BlockOrder *o = order_of(x);
    if (o->cluster == x->graph->cluster) return;
    o->cluster = x->graph->cluster;
    for (int i = 0; i < x->cta.n_warps; i++) learn(x, i, &o->known[i], o->cluster);
}

void order_meet(Warp *w)
{
    landed_meet(w);
    BlockOrder *o = w->x->order;
    if (o && o->flags && o->known[w->index] != o->flags)
        learn(w->x, w->index, &o->known[w->index], o->flags);
}

/* ---- places ---- */

/* What a store released that has changed a word last: a strong one, or a weak one behind a fence. */
static uint32_t node_at(const Exec *x, uint64_t word)
{
    const DevMem *mem = x->mem;
    uint32_t node = order_place(x->graph, word), tag = (uint32_t)(mem->writer[word] >> 32);
    if (node || tag <= mem->tag_floor) return node;
    uint32_t i = tag - mem->tag_floor;
    return mem->tag_block[i] == (uint32_t)x->cta.linear ? 0 : mem->tag_order[i];
}

/* Adds the nodes of the words of an access to known, or to seen. */
static void take(Warp *w, const Access *a, int is_known)
{
    Exec *x = w->x;
    uint64_t last = UINT64_MAX;
    EACH_LANE(a->mask, i)
    {
        uint64_t lo = access_address(a, (int)i) - ARENA_BASE, end = lo + (uint64_t)a->size;
        for (uint64_t word = lo >> 2; word <= (end - 1) >> 2; word++) {
            uint32_t node = word == last ? 0 : node_at(x, word);
            last = word;
            if (!node) continue;
            BlockOrder *o = order_of(x);
            uint32_t *by = takers(x->graph, node, o->serial, is_known);
            if (*by >> w->index & 1) continue; /* a loop may look at it again and again */
            *by |= 1u << w->index;
            learn(x, w->index, is_known ? &o->known[w->index] : &o->seen[w->index], node);
        }
    }
}

void order_observe(Warp *w, const Access *a)
{
    const OrderGraph *g = w->x->graph;
    int order = a->mo->order;
    order_meet(w);
    if (!g || g->n < 2 || a->mo->kind == MEM_RED || a->mo->scope != SCOPE_DEVICE) return;
    exec_charge(w->x, PLACE_COST * __builtin_popcount(a->mask));
    take(w, a, order == ORDER_VOLATILE || order == ORDER_ACQUIRE || order == ORDER_ACQ_REL);
}

void order_glance(Warp *w, const Access *a)
{
    const OrderGraph *g = w->x->graph;
    uint64_t at = a->base - ARENA_BASE, lo = (at + (uint64_t)(int64_t)a->p->min) >> 2,
             hi = (at + (uint64_t)(int64_t)a->p->max + (uint64_t)a->size) >> 2;
    if (!g->n_places || lo > g->hi || hi < g->lo) return;
    exec_charge(w->x, PLACE_COST * __builtin_popcount(a->mask));
    waits_look(w, a);
    take(w, a, 0);
}

void order_publish(Warp *w, const Access *a)
{
    Exec *x = w->x;
    if (!x->order || !x->order->used || a->mo->scope != SCOPE_DEVICE) return;
    uint32_t node = released_by(x, w->index);
    int adds = a->mo->kind != MEM_STORE;
    if (!node) return;
    exec_charge(x, PLACE_COST * __builtin_popcount(a->mask));
    EACH_LANE(a->mask, i)
    {
        uint64_t lo = access_address(a, (int)i) - ARENA_BASE, end = lo + (uint64_t)a->size;
        for (uint64_t word = lo >> 2; word <= (end - 1) >> 2; word++) {
            uint32_t old = adds ? order_place(x->graph, word) : 0;
            if (old == node) continue;
            if (old && *takers(x->graph, old, x->order->serial, 1) >> w->index & 1) old = 0;
            order_set_place(x->graph, word, order_join(x->graph, node, old));
        }
    }
}

int order_knows(Warp *w, uint64_t tag)
{
    Exec *x = w->x;
    const DevMem *mem = x->mem;
    uint32_t i = (uint32_t)(tag >> 32) - mem->tag_floor;
    int warp = (int)(tag >> TAG_WARP_SHIFT & 63);
    int64_t steps = 0;
    if (!x->graph || !x->order || !x->order->used) return 0;
    if (x->graph->lost) return mem->tag_released[i] && x->cta.acquired;
    uint32_t from = x->order->known[w->index];
    uint64_t key = tag & ~(uint64_t)TAG_BYTES;
    OrderAnswer *found =
        &x->graph
             ->found[((key >> TAG_WARP_SHIFT) * 0x9e3779b97f4a7c15u + from * 0x85ebca6bu) >> 52];
    if (from && found->from == from && found->tag == key) return 1;
    OrderAccess a = {mem->tag_block[i], tag >> TAG_PHASE_SHIFT, warp & 31, warp >= MAX_WARPS};
    int knows = order_reaches(x->graph, from, &a, &steps);
    if (knows) *found = (OrderAnswer){key, from};
    exec_charge(x, steps);
    return knows;
}
