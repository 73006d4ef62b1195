/* Executes a bound graph in double precision, operator after operator. Operators take and give
 * elements in C order; a tensor that lies otherwise in its base is gathered before and scattered
 * after. An input that is written in place is copied first. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/op_strided.h"
#include "tasks/graph/graph.h"

static const double most_bytes = 64.0 * (1 << 30);

typedef struct {
    const GraphBound *b;
    const double **base; /* by value: the array of a base */
    double **own;        /* the same array where this execution allocated it */
} Memory;

static int in_order(const GraphBound *b, int value)
{
    const GraphValue *v = &b->values[value];
    OpTensor plain = v->tensor;
    op_contiguous(&plain);
    if (v->tensor.offset || op_elements(&plain) != b->values[v->base].extent) return 0;
    for (int i = 0; i < plain.rank; i++)
        if (plain.size[i] > 1 && plain.stride[i] != v->tensor.stride[i]) return 0;
    return 1;
}

static void own_base(Memory *m, int base)
{
    if (m->own[base]) return;
    size_t n = (size_t)m->b->values[base].extent;
    int whole = m->base[base] || in_order(m->b, base); /* the operator writes each element */
    m->own[base] =
        whole ? memory_grow(NULL, n + 1, sizeof(double)) : memory_array(n + 1, sizeof(double));
    if (m->base[base]) memcpy(m->own[base], m->base[base], n * sizeof(double));
    m->base[base] = m->own[base];
}

static int run_node(Memory *m, int node, const GraphHook *hook, Error *err)
{
    const GraphBound *b = m->b;
    const GraphCall *c = &b->calls[node];
    const Graph *g = b->graph;
    const double *in[OP_MAX_TENSORS] = {0};
    double *gathered[OP_MAX_TENSORS] = {0}, *out[OP_MAX_RESULTS] = {0}, *made[OP_MAX_RESULTS] = {0};
    int rc = 0; /* of `arguments`: 1, the operator does not run */
    for (int i = 0; i < c->call.n_tensors; i++) {
        const GraphValue *v = &b->values[c->in[i]];
        in[i] = m->base[v->base];
        if (in_order(b, c->in[i])) continue;
        gathered[i] = memory_grow(NULL, (size_t)op_elements(&v->tensor) + 1, sizeof(double));
        walk_gather(&v->tensor, in[i], gathered[i]);
        in[i] = gathered[i];
    }
    for (int i = 0; i < c->call.n_results; i++) {
        int v = g->first[node] + i, base = b->values[v].base;
        int writes = base == v || c->call.op->flags & OP_IN_PLACE;
        if (writes) own_base(m, base); /* the other results of a node may be views */
        if (base == v && in_order(b, v))
            out[i] = m->own[base];
        else
            out[i] = made[i] =
                memory_grow(NULL, (size_t)op_elements(&b->values[v].tensor) + 1, sizeof(double));
    }
    if (hook && hook->arguments) rc = hook->arguments(hook->ctx, b, node, in, err);
    if (!rc) rc = c->call.op->reference(&c->call, in, out, err);
    if (rc >= 0 && hook && hook->results) rc = hook->results(hook->ctx, b, node, in, out, err);
    for (int i = 0; i < c->call.n_results; i++) {
        int v = g->first[node] + i;
        if (made[i] && m->own[b->values[v].base])
            walk_scatter(&b->values[v].tensor, made[i], m->own[b->values[v].base]);
        free(made[i]);
    }
    for (int i = 0; i < c->call.n_tensors; i++) free(gathered[i]);
    return rc ? error_prefix(err, "graph[%d]", node) : 0;
}

static void release_after(Memory *m, int node)
{
    const GraphBound *b = m->b;
    const GraphCall *c = &b->calls[node];
    for (int i = 0; i < c->call.n_tensors + c->call.n_results; i++) {
        int v = i < c->call.n_tensors ? c->in[i] : b->graph->first[node] + i - c->call.n_tensors;
        int base = b->values[v].base;
        if (b->values[base].last > node) continue;
        free(m->own[base]);
        m->own[base] = NULL;
        m->base[base] = NULL;
    }
}

int graph_run(const GraphBound *b, const double *const *in, double *const *out,
              const GraphHook *hook, Error *err)
{
    const Graph *g = b->graph;
    int rc = 0;
    if (b->peak > most_bytes)
        return error_set(err, ERROR_LIMIT,
                         "the reference needs %.0f GiB for its values, at most %.0f are given",
                         b->peak / (1 << 30), most_bytes / (1 << 30));
    Memory m = {b, memory_array((size_t)g->n_values + 1, sizeof *m.base),
                memory_array((size_t)g->n_values + 1, sizeof *m.own)};
    for (int i = 0; i < g->n_inputs; i++) m.base[i] = in[i];
    for (int node = 0; node < g->n_nodes && !rc; node++) {
        if (!b->calls[node].live || b->calls[node].view) continue;
        rc = run_node(&m, node, hook, err);
        if (!rc) release_after(&m, node);
    }
    for (int i = 0; i < g->n_outputs && !rc; i++) {
        const GraphValue *v = &b->values[g->output[i]];
        walk_gather(&v->tensor, m.base[v->base], out[i]);
    }
    for (int v = 0; v < g->n_values; v++) free(m.own[v]);
    free(m.own);
    free(m.base);
    return rc;
}
