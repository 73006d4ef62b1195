/* A query walks from a node to those before it, the nearest first. Most find what they look for at once;
 * one that has to go far keeps what it found, since others from the same node follow. */
#include "eval/sim/memory/order_graph.h"

#include <stdlib.h>

#include "base/memory.h"

enum {
    NODES_MAX = 1 << 20,
    POSITIONS_MAX = 1 << 23,
    PLACES_MIN = 1 << 10,
    NEAR = 256 /* nodes that a query looks at before it keeps what it finds */
};

void order_graph_clear(OrderGraph *g, int n_warps)
{
    g->n = 1;
    g->n_positions = 0;
    if (g->n_places) memset(g->places, 0, g->cap_places * sizeof *g->places);
    g->n_places = 0;
    g->lo = UINT64_MAX;
    g->hi = 0;
    g->n_warps = n_warps;
    g->lost = 0;
    memset(g->found, 0, sizeof g->found);
    g->serial = g->cluster = g->visit = g->memo_from = 0;
}

void order_graph_free(OrderGraph *g)
{
    free(g->nodes);
    free(g->positions);
    free(g->places);
    free(g->queue);
    free(g->memo);
    free(g);
}

/* ---- nodes ---- */

static uint32_t new_node(OrderGraph *g)
{
    if (g->n == NODES_MAX) g->lost = 1;
    if (g->lost) return 0;
    if (g->n >= g->cap) {
        g->cap = g->cap ? 2 * g->cap : 256;
        g->nodes = memory_grow(g->nodes, g->cap, sizeof *g->nodes);
    }
    memset(&g->nodes[g->n], 0, sizeof *g->nodes);
    return g->n++;
}

uint32_t order_node(OrderGraph *g, uint64_t block, const uint64_t *positions, uint32_t before)
{
    size_t n = (size_t)g->n_warps;
    if (g->n_positions + n > POSITIONS_MAX) g->lost = 1;
    uint32_t node = new_node(g);
    if (!node) return 0;
    if (g->n_positions + n > g->cap_positions) {
        g->cap_positions = g->cap_positions ? 2 * g->cap_positions : 1024;
        g->positions = memory_grow(g->positions, g->cap_positions, sizeof *g->positions);
    }
    memcpy(g->positions + g->n_positions, positions, n * sizeof *positions);
    g->nodes[node].covers = 1 + (uint32_t)g->n_positions;
    g->nodes[node].block = block;
    g->nodes[node].before[0] = before;
    g->n_positions += n;
    return node;
}

uint32_t order_join(OrderGraph *g, uint32_t a, uint32_t b)
{
    if (!a || !b || a == b) return a ? a : b;
    if (g->nodes[a].before[0] == b || g->nodes[a].before[1] == b) return a;
    if (g->nodes[b].before[0] == a || g->nodes[b].before[1] == a) return b;
    uint32_t node = new_node(g);
    if (!node) return a;
    g->nodes[node].before[0] = a;
    g->nodes[node].before[1] = b;
    return node;
}

/* ---- places ---- */

static OrderPlace *find_place(const OrderGraph *g, uint64_t word)
{
    size_t mask = g->cap_places - 1, i = (word * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (g->places[i].key && g->places[i].key != word + 1) i = (i + 1) & mask;
    return &g->places[i];
}

uint32_t order_place(const OrderGraph *g, uint64_t word)
{
    if (word < g->lo || word > g->hi) return 0;
    return find_place(g, word)->node;
}

static void grow_places(OrderGraph *g)
{
    OrderPlace *old = g->places;
    size_t n = g->cap_places;
    g->cap_places = n ? 2 * n : PLACES_MIN;
    g->places = memory_array(g->cap_places, sizeof *g->places);
    for (size_t i = 0; i < n; i++)
        if (old[i].key) *find_place(g, old[i].key - 1) = old[i];
    free(old);
}

void order_set_place(OrderGraph *g, uint64_t word, uint32_t node)
{
    if (2 * (g->n_places + 1) > g->cap_places) grow_places(g);
    OrderPlace *p = find_place(g, word);
    g->n_places += !p->key;
    *p = (OrderPlace){word + 1, node};
    if (word < g->lo) g->lo = word;
    if (word > g->hi) g->hi = word;
}

/* ---- queries ---- */

static int covers(const OrderGraph *g, const OrderNode *n, const OrderAccess *a)
{
    if (!n->covers || n->block != a->block) return 0;
    const uint64_t *of = g->positions + n->covers - 1;
    if (!a->several) return of[a->warp] >= a->position;
    for (int i = 0; i < g->n_warps; i++)
        if (of[i] >= a->position) return 1;
    return 0;
}

static uint32_t *memo_of(const OrderGraph *g, uint64_t block)
{
    size_t mask = g->cap_memo - 1, i = (block * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (g->memo[i] && g->nodes[g->memo[i]].block != block) i = (i + 1) & mask;
    return &g->memo[i];
}

/* Keeps the releases among the first n nodes of the queue. */
static void keep(OrderGraph *g, uint32_t from, uint32_t n)
{
    if (g->cap_memo < 4 * (size_t)n) {
        while (g->cap_memo < 4 * (size_t)n) g->cap_memo = g->cap_memo ? 2 * g->cap_memo : 1024;
        free(g->memo);
        g->memo = memory_array(g->cap_memo, sizeof *g->memo);
    }
    memset(g->memo, 0, g->cap_memo * sizeof *g->memo);
    for (uint32_t i = n; i-- > 0;) { /* the nearest of a block comes to the front */
        OrderNode *node = &g->nodes[g->queue[i]];
        if (!node->covers) continue;
        uint32_t *first = memo_of(g, node->block);
        node->next = *first;
        *first = g->queue[i];
    }
    g->memo_from = from;
}

static int reaches_kept(const OrderGraph *g, const OrderAccess *a, int64_t *steps)
{
    for (uint32_t i = *memo_of(g, a->block); i; i = g->nodes[i].next) {
        ++*steps;
        if (covers(g, &g->nodes[i], a)) return 1;
    }
    return 0;
}

static uint32_t visit(OrderGraph *g, uint32_t node, uint32_t n)
{
    if (!node || g->nodes[node].visit == g->visit) return n;
    g->nodes[node].visit = g->visit;
    g->queue[n] = node;
    return n + 1;
}

int order_reaches(OrderGraph *g, uint32_t from, const OrderAccess *a, int64_t *steps)
{
    if (!from) return 0;
    if (g->memo_from == from) return reaches_kept(g, a, steps);
    if (g->cap_queue < g->n) {
        g->cap_queue = g->cap;
        free(g->queue);
        g->queue = memory_array(g->cap_queue, sizeof *g->queue);
    }
    g->visit++;
    uint32_t n = visit(g, from, 0);
    int found = 0;
    for (uint32_t i = 0; i < n && (!found || i >= NEAR); i++) {
        const OrderNode *node = &g->nodes[g->queue[i]];
        ++*steps;
        found |= covers(g, node, a);
        for (int k = 0; k < 2; k++) n = visit(g, node->before[k], n);
    }
    if (n > NEAR && !found) keep(g, from, n);
    return found;
}
