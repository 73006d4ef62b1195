/* The control flow graph of a function: where diverged lanes meet again. */
#include <stdlib.h>

#include "base/memory.h"
#include "eval/sim/decode/decode_internal.h"
#include "eval/sim/ptx/postdominate.h"

typedef struct {
    int n;              /* blocks; the virtual exit is n */
    int *first, *edges; /* successors of b: edges[first[b]] to edges[first[b + 1] - 1] */
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

/* Fills in the joins of blocks that have none yet. */
static void find_joins(Decoder *d, int skip_exits)
{
    Graph g = {.n = d->n_blocks, .skip_exits = skip_exits};
    find_edges(d, &g);
    int *above = postdominate(g.n, g.first, g.edges);
    for (int b = 0; b < g.n; b++)
        if (d->blocks[b].join < 0 && above[b] >= 0 && above[b] < g.n) d->blocks[b].join = above[b];
    free(g.edges);
    free(g.first);
    free(above);
}

/* Exits are left out first, so that an early exit does not keep the other lanes from meeting. Lanes
 * whose paths share nothing but an exit meet there. */
void cfg_joins(Decoder *d)
{
    find_joins(d, 1);
    find_joins(d, 0);
}
