/* What a node takes together tells which axes are sums. */
#include "tasks/derive/measured_sizes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tasks/derive/sizes.h"
#include "tasks/task_graph.h"

enum { HALVINGS = 64, LEAST_AXIS = 4 };

/* What a node takes together. Below zero: the rows of a table whose numbers depend on no input, as those of
 * positions: the table keeps them. */
static int64_t together(const GraphBound *b, const GraphCall *c)
{
    if (op_is_of(c->call.op, &embedding_family) && !b->values[c->in[1]].varies)
        return -c->call.tensor[0].size[0];
    return sizes_reduced(c);
}

/* reduced: memory for what each node takes together. */
static int extent_of(const Task *t, const Workload *w, MeasuredExtent *out, int64_t *reduced)
{
    GraphBound *b;
    if (task_allows(t, w, NULL) || task_graph_bind(t, w, &b, NULL)) return -1;
    *out = (MeasuredExtent){sizes_flops(b), 1, 0};
    for (int node = 0; node < b->graph->n_nodes; node++) {
        const GraphCall *c = &b->calls[node];
        int64_t n = reduced[node] = together(b, c);
        if (!strncmp(c->call.op->name, "aten.sum.", 9)) out->sums = fmax(out->sums, (double)n);
    }
    for (int i = 0; i < t->n_outputs; i++)
        out->elements += (double)op_elements(&b->values[b->graph->output[i]].tensor);
    graph_bound_free(b);
    return 0;
}

static int is_row_wise(const Op *op)
{
    return op_is_of(op, &norm_family) || op_is_of(op, &softmax_family);
}

/* Does each node take enough elements together? */
static int is_alike(const MeasuredSizes *of, const int64_t *now, const int64_t *own)
{
    const Graph *g = of->t->graph;
    for (int node = 0; node < g->n_nodes; node++) {
        int64_t n = own[node], least = of->few                                     ? of->few
                                       : of->rows && is_row_wise(g->line[node].op) ? of->rows
                                                                                   : n;
        if (n < 0 ? now[node] != n : now[node] < (n < least ? n : least)) return 0;
    }
    return 1;
}

static void shorten(const MeasuredSizes *of, Workload *w, const int64_t *own, MeasuredExtent *at)
{
    int64_t *reduced = memory_array((size_t)of->t->graph->n_nodes + 1, sizeof *reduced);
    for (int i = 0; i < of->t->n_axes; i++)
        for (int k = 0; k < HALVINGS && at->flops > of->flops; k++) {
            Workload next = *w;
            MeasuredExtent now;
            next.axis[i] = (next.axis[i] + 1) / 2;
            if (next.axis[i] < LEAST_AXIS || extent_of(of->t, &next, &now, reduced) ||
                !is_alike(of, reduced, own))
                break;
            *w = next;
            *at = now;
        }
    free(reduced);
}

int measured_sizes(const MeasuredSizes *of, Workload *w, MeasuredExtent *own, MeasuredExtent *at)
{
    int64_t *reduced = memory_array((size_t)of->t->graph->n_nodes + 1, sizeof *reduced);
    *own = *at = (MeasuredExtent){1, 1, 1};
    int rc = extent_of(of->t, w, own, reduced);
    *at = *own;
    if (!rc) shorten(of, w, reduced, at);
    free(reduced);
    return rc;
}
