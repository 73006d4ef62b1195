/* Nodes that are computed from the same in the same way are one: what a graph has twice is computed once. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "generate/node_build.h"

static int same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

static int same_sizes(const Size *a, const Size *b, int n)
{
    return !memcmp(a, b, (size_t)n * sizeof *a);
}

/* 1: equal elements, of nodes that lie in no memory of their own. */
static int is_equal(const Node *a, const Node *b)
{
    if (a->kind != b->kind || a->dtype != b->dtype || memcmp(a->arg, b->arg, sizeof a->arg) ||
        !node_same_shape(a, b) || a->kind == NODE_INPUT || a->kind == NODE_KEPT)
        return 0;
    return same_text(a->text, b->text) && same_text(a->type, b->type) &&
           same_text(a->from, b->from) && !memcmp(a->number, b->number, sizeof a->number) &&
           !memcmp(a->p, b->p, sizeof a->p) && size_same(a->scale, b->scale) &&
           a->fold == b->fold && a->dims == b->dims && a->pair < 0 && b->pair < 0 &&
           a->across == b->across && a->axis == b->axis && a->last == b->last &&
           size_same(a->offset, b->offset) && same_sizes(a->step, b->step, a->rank) &&
           !a->stored && !b->stored;
}

/* Nodes come after their arguments: those of equal ones have the same numbers by then. */
static int first_equal(const Nodes *n, int node)
{
    for (int i = 0; i < node; i++)
        if (is_equal(&n->node[i], &n->node[node])) return i;
    return node;
}

static void rename_all(int *at, int n, const int *to)
{
    for (int i = 0; i < n; i++)
        if (at[i] >= 0) at[i] = to[at[i]];
}

void nodes_join_equal(Nodes *n)
{
    int *to = memory_array((size_t)n->n + 1, sizeof *to);
    for (int i = 0; i < n->n; i++) {
        rename_all(n->node[i].arg, 3, to);
        to[i] = first_equal(n, i);
    }
    rename_all(n->of, n->graph->n_values, to);
    rename_all(n->output, n->graph->n_outputs, to);
    for (int line = 0; line < n->graph->n_nodes; line++)
        if (n->kept[line])
            rename_all(n->kept[line], n->sizes->bound[0]->calls[line].call.n_tensors, to);
    free(to);
}
