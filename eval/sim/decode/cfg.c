/* The control flow graph of a function: where diverged lanes meet again. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/decode/decode_internal.h"

/* ---- immediate post-dominators (Cooper, Harvey, Kennedy) on the reversed graph ---- */

typedef struct {
    int n;              /* blocks; the virtual exit is n */
    int *first, *edges; /* successors of b: edges[first[b]] to edges[first[b + 1] - 1] */
    int *pred_first, *preds;
    int *order;  /* the blocks in reverse postorder from the exit */
    int *number; /* the place of each block in order; -1 unreached */
    int n_order;
    int *idom;
    int skip_exits;
} Graph;

/* Adds an edge. Edges to blocks that only exit can be left out, since such lanes need no join. */
static int add_edge(const Decoder *d, const Graph *g, int *edges, int n, int to)
{
    if (d->blocks[to].pure_exit && g->skip_exits) return n;
    edges[n] = to;
    return n + 1;
}

static void find_edges(const Decoder *d, Graph *g)
{
    int capacity = 1;
    for (int b = 0; b < g->n; b++) capacity += 2 + d->blocks[b].n_table;
    g->edges = memory_array((size_t)capacity, sizeof(int));
    g->first = memory_array((size_t)g->n + 2, sizeof(int));
    int n = 0;
    for (int b = 0; b < g->n; b++) {
        const BlockInfo *info = &d->blocks[b];
        int start = n;
        g->first[b] = n;
        if (info->end == END_BRANCH || info->end == END_COND)
            n = add_edge(d, g, g->edges, n, info->target);
        if ((info->end == END_COND || info->end == END_FALL) && b + 1 < g->n)
            n = add_edge(d, g, g->edges, n, b + 1);
        for (int k = 0; k < info->n_table; k++) n = add_edge(d, g, g->edges, n, info->table[k]);
        if (n == start) g->edges[n++] = g->n;
    }
    g->first[g->n] = n;
}

static void reverse_edges(Graph *g)
{
    int total = g->first[g->n];
    g->pred_first = memory_array((size_t)g->n + 2, sizeof(int));
    g->preds = memory_array((size_t)total + 1, sizeof(int));
    for (int i = 0; i < total; i++) g->pred_first[g->edges[i] + 1]++;
    for (int b = 0; b <= g->n; b++) g->pred_first[b + 1] += g->pred_first[b];
    int *at = memory_array((size_t)g->n + 2, sizeof(int));
    memcpy(at, g->pred_first, sizeof(int) * ((size_t)g->n + 1));
    for (int b = 0; b < g->n; b++)
        for (int i = g->first[b]; i < g->first[b + 1]; i++) g->preds[at[g->edges[i]]++] = b;
    free(at);
}

static void number_blocks(Graph *g)
{
    int *stack = memory_array((size_t)g->n + 2, sizeof(int)),
        *next = memory_array((size_t)g->n + 2, sizeof(int));
    int depth = 0, post = g->n;
    g->order = memory_array((size_t)g->n + 2, sizeof(int));
    g->number = memory_array((size_t)g->n + 2, sizeof(int));
    for (int b = 0; b <= g->n; b++) g->number[b] = -1;
    stack[depth++] = g->n;
    g->number[g->n] = 0;
    next[g->n] = g->pred_first[g->n];
    while (depth) {
        int b = stack[depth - 1];
        if (next[b] < g->pred_first[b + 1]) {
            int p = g->preds[next[b]++];
            if (g->number[p] < 0) {
                g->number[p] = 0;
                next[p] = g->pred_first[p];
                stack[depth++] = p;
            }
            continue;
        }
        depth--;
        g->order[post--] = b;
    }
    g->n_order = g->n - post;
    memmove(g->order, g->order + post + 1, sizeof(int) * (size_t)g->n_order);
    for (int i = 0; i < g->n_order; i++) g->number[g->order[i]] = i;
    free(stack);
    free(next);
}

static int meet(const Graph *g, int a, int b)
{
    while (a != b) {
        while (g->number[a] > g->number[b]) a = g->idom[a];
        while (g->number[b] > g->number[a]) b = g->idom[b];
    }
    return a;
}

static void dominate(Graph *g)
{
    g->idom = memory_array((size_t)g->n + 2, sizeof(int));
    for (int b = 0; b <= g->n; b++) g->idom[b] = -1;
    g->idom[g->n] = g->n;
    for (int changed = 1; changed;) {
        changed = 0;
        for (int i = 1; i < g->n_order; i++) {
            int b = g->order[i], best = -1;
            for (int e = g->first[b]; e < g->first[b + 1]; e++) {
                int s = g->edges[e];
                if (g->number[s] >= 0 && g->idom[s] >= 0) best = best < 0 ? s : meet(g, s, best);
            }
            if (best >= 0 && g->idom[b] != best) {
                g->idom[b] = best;
                changed = 1;
            }
        }
    }
}

/* Fills in the joins of blocks that have none yet. */
static void find_joins(Decoder *d, int skip_exits)
{
    Graph g = {.n = d->n_blocks, .skip_exits = skip_exits};
    find_edges(d, &g);
    reverse_edges(&g);
    number_blocks(&g);
    dominate(&g);
    for (int b = 0; b < g.n; b++)
        if (d->blocks[b].join < 0 && g.number[b] >= 0 && g.idom[b] < g.n)
            d->blocks[b].join = g.idom[b];
    free(g.edges);
    free(g.first);
    free(g.preds);
    free(g.pred_first);
    free(g.order);
    free(g.number);
    free(g.idom);
}

/* Exits are left out first, so that an early exit does not keep the other lanes from meeting. Lanes
 * whose paths share nothing but an exit meet there. */
void cfg_joins(Decoder *d)
{
    find_joins(d, 1);
    find_joins(d, 0);
}
