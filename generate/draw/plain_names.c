/* The names in a plain kernel: axes are rows and columns, and values have the names of the graph, which the
 * prompt has, so that a small model can copy them. */
#include <stdio.h>
#include <string.h>

#include "generate/draw/plain_text.h"

/* ---- axes ---- */

/* 1: an index has a text, which holds names of axes. */
static int has_texts(const Kernel *k)
{
    for (int r = 0; r < k->n_roots; r++)
        if (*k->root[r].at.text) return 1;
    for (int i = 0; i < k->n; i++)
        if (*k->step[i].at.text) return 1;
    return 0;
}

/* Names the loops of a mask, where they are as many as there are names. */
static void name_loops(Kernel *k, unsigned mask, int n, const char *const *name)
{
    int loops;
    mask = plain_loops(k, mask, &loops);
    for (int i = 0; i < k->axes.n && loops == n; i++)
        if (mask >> i & 1) snprintf(k->axes.name[i], sizeof k->axes.name[i], "%s", *name++);
}

void plain_name_axes(Plainer *x)
{
    static const char *const both[] = {"row", "col"}, *const element[] = {"i"},
                             *const term[] = {"term"};
    Kernel *k = x->w.k;
    int rows;
    if (has_texts(k)) return;
    plain_loops(k, k->rows, &rows);
    if (k->has_folds) {
        name_loops(k, k->rows, 1, both);
        name_loops(k, k->rows, 2, both);
        name_loops(k, x->w.columns, 1, rows > 1 ? term : both + 1);
    } else {
        name_loops(k, x->w.columns, 1, element);
        name_loops(k, x->w.columns, 2, both);
    }
}

const Index *plain_flat(const Plainer *x)
{
    const Kernel *k = x->w.k;
    const Index *at = &k->root[0].at;
    int n, first = -1, last = x->w.last;
    const unsigned mask = plain_loops(k, x->w.columns, &n);
    for (int i = 0; i < k->axes.n; i++)
        if (mask >> i & 1 && i != last) first = i;
    if (n != 2 || last < 0 || !(mask >> last & 1) || *at->text || !size_is(at->plus, 0))
        return NULL;
    return size_is(at->by[last], 1) && size_same(at->by[first], k->axes.size[last]) ? at : NULL;
}

/* ---- values ---- */

/* 1: an axis is called after the step. */
static int is_axis(const Kernel *k, int step)
{
    for (int i = 0; i < k->axes.n; i++)
        if (k->bound[i] == step && !k->step[step].place) return 1;
    return 0;
}

static int is_taken(const Kernel *k, char (*names)[WRITER_NAME], int n, const char *name)
{
    if (graph_find(k->nodes->graph, name, strlen(name)) >= 0 || node_name_taken(k->nodes, name))
        return 1;
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name)) return 1;
    return 0;
}

void plain_name_values(Plainer *x, char (*names)[WRITER_NAME])
{
    const Kernel *k = x->w.k;
    char own[GRAPH_NAME];
    for (int i = 0; i < k->n; i++) {
        const Node *of = &k->nodes->node[k->step[i].node];
        snprintf(own, sizeof own, "%s", of->name);
        if (!*own || !of->stored) node_key(k->nodes, k->step[i].node, own);
        if (is_axis(k, i)) {
            snprintf(names[i], WRITER_NAME, "t%d", i);
            continue;
        }
        snprintf(names[i], WRITER_NAME, "%.50s_i", own);
        for (int n = 2; is_taken(k, names, i, names[i]); n++)
            snprintf(names[i], WRITER_NAME, "%.50s_i%d", own, n);
    }
    x->w.name = names;
}
