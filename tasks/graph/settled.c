/* Choices whose condition is one number. */
#include "tasks/graph/settled.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { DEEP = 16 };

static int is_named(const GraphCall *c, const char *name)
{
    const char *own = c->call.op->name + strlen("aten.");
    const size_t n = strlen(name);
    return !strncmp(own, name, n) && own[n] == '.';
}

static int is_written(const GraphBound *b, int base)
{
    for (int i = 0; i < b->graph->n_nodes; i++)
        if (b->calls[i].call.op->flags & OP_IN_PLACE && b->values[b->graph->first[i]].base == base)
            return 1;
    return 0;
}

/* Tensors of one number, as a line says it. */
static int filled(const GraphCall *c, double *out)
{
    static const char *const names[] = {"ones",      "zeros",      "full",
                                        "ones_like", "zeros_like", "full_like",
                                        "new_ones",  "new_zeros",  "new_full"};
    const int at = op_argument(c->call.op, "fill_value");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!is_named(c, names[i])) continue;
        *out = at >= 0 ? c->call.arg[at].number : strstr(names[i], "ones") != NULL;
        return 1;
    }
    return 0;
}

/* 1: all elements of a value are *out, or of bool as true as it. */
static int is_constant(const GraphBound *b, int value, double *out, int depth)
{
    const GraphValue *v = &b->values[value];
    const GraphCall *c = v->node >= 0 ? &b->calls[v->node] : NULL;
    if (!c || depth > DEEP || is_written(b, v->base) || c->call.n_results != 1) return 0;
    if (filled(c, out)) return 1;
    if (c->call.n_tensors != 1 || !is_constant(b, c->in[0], out, depth + 1)) return 0;
    if (is_named(c, "logical_not") || is_named(c, "bitwise_not")) {
        *out = *out == 0;
        return 1;
    }
    return c->view || is_named(c, "clone") || is_named(c, "bool");
}

int graph_settled(const GraphBound *b, int node)
{
    const GraphCall *c = &b->calls[node];
    const int chooses = !strcmp(c->call.op->name, "aten.where.self"),
              fills = !strcmp(c->call.op->name, "aten.masked_fill.Scalar");
    double holds;
    if (!c->live || !(chooses || fills)) return -1;
    if (!is_constant(b, c->in[fills], &holds, 0) || (fills && holds != 0)) return -1;
    const int at = fills ? 0 : holds != 0 ? 1 : 2;
    const OpTensor *x = &c->call.tensor[at], *y = &c->call.result[0];
    return x->dtype == y->dtype && x->rank == y->rank &&
                   !memcmp(x->size, y->size, (size_t)y->rank * sizeof *y->size)
               ? at
               : -1;
}

unsigned char *graph_needed(const GraphBound *b)
{
    const Graph *g = b->graph;
    unsigned char *of = memory_array((size_t)g->n_values + 1, 1),
                  *out = memory_array((size_t)g->n_nodes + 1, 1);
    for (int i = 0; i < g->n_outputs; i++) of[b->values[g->output[i]].base] = 1;
    for (int node = g->n_nodes - 1; node >= 0; node--) {
        const GraphCall *c = &b->calls[node];
        const int only = graph_settled(b, node);
        for (int i = 0; i < c->call.n_results; i++)
            out[node] |= of[b->values[g->first[node] + i].base];
        for (int i = 0; i < c->call.n_tensors && out[node]; i++)
            if (only < 0 || i == only) of[b->values[c->in[i]].base] = 1;
    }
    free(of);
    return out;
}
