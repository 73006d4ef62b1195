/* Immediate post-dominators as in Cooper, Harvey and Kennedy, on the reversed graph. */
#include "eval/sim/ptx/postdominate.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

typedef struct {
    int n;
    const int *first, *edges; /* successors */
    int *pred_first, *preds;
    int *order;  /* the blocks in reverse postorder from the exit */
    int *number; /* the place of each block in order; -1: not reached */
    int n_order;
    int *above; /* the immediate post-dominator */
} Graph;

static void reverse_edges(Graph *g)
{
    int total = g->first[g->n], *at = memory_array((size_t)g->n + 2, sizeof(int));
    g->pred_first = memory_array((size_t)g->n + 3, sizeof(int));
    g->preds = memory_array((size_t)total + 1, sizeof(int));
    for (int i = 0; i < total; i++) g->pred_first[g->edges[i] + 1]++;
    for (int b = 0; b <= g->n; b++) g->pred_first[b + 1] += g->pred_first[b];
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
        while (g->number[a] > g->number[b]) a = g->above[a];
        while (g->number[b] > g->number[a]) b = g->above[b];
    }
    return a;
}

static void dominate(Graph *g)
{
    g->above = memory_array((size_t)g->n + 2, sizeof(int));
    for (int b = 0; b <= g->n; b++) g->above[b] = -1;
    g->above[g->n] = g->n;
    for (int changed = 1; changed;) {
        changed = 0;
        for (int i = 1; i < g->n_order; i++) {
            int b = g->order[i], best = -1;
            for (int e = g->first[b]; e < g->first[b + 1]; e++) {
                int s = g->edges[e];
                if (g->number[s] >= 0 && g->above[s] >= 0) best = best < 0 ? s : meet(g, s, best);
            }
            if (best >= 0 && g->above[b] != best) {
                g->above[b] = best;
                changed = 1;
            }
        }
    }
}

int *postdominate(int n, const int *first, const int *edges)
{
    Graph g = {.n = n, .first = first, .edges = edges};
    reverse_edges(&g);
    number_blocks(&g);
    dominate(&g);
    free(g.pred_first);
    free(g.preds);
    free(g.order);
    free(g.number);
    return g.above;
}
