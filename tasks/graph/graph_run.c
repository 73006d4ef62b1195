/* Executes a bound graph in double precision, operator after operator. Operators take and give
 * elements in C order; a tensor that lies otherwise in its base is gathered before and scattered
 * after. An input that is written in place is copied first. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/op_strided.h"
#include "tasks/graph/graph.h"

static const double max_bytes = 64.0 * (1 << 30);

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
    if (rc >= 0 && hook && hook->results)
        rc = hook->results(hook->ctx, &(GraphStep){b, node, in, out}, err);
    for (int i = 0; i < c->call.n_results; i++) {
        int v = g->first[node] + i;
        double **own = &m->own[b->values[v].base];
        if (made[i] && *own && in_order(b, v)) { /* all of the base: no copy is needed */
            double *old = *own;
            m->base[b->values[v].base] = *own = made[i];
            made[i] = old;
        } else if (made[i] && *own) {
            walk_scatter(&b->values[v].tensor, made[i], *own);
        }
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

static int enough_memory(const GraphBound *b, Error *err)
{
    if (b->peak <= max_bytes) return 0;
    return error_set(err, ERROR_LIMIT,
                     "the reference needs %.0f GiB for its values, at most %.0f are given",
                     b->peak / (1 << 30), max_bytes / (1 << 30));
}

static Memory memory_open(const GraphBound *b)
{
    size_t n = (size_t)b->graph->n_values + 1;
    Memory m = {b, memory_array(n, sizeof *m.base), memory_array(n, sizeof *m.own)};
    return m;
}

static void memory_close(Memory *m)
{
    for (int v = 0; v < m->b->graph->n_values; v++) free(m->own[v]);
    free(m->own);
    free(m->base);
}

static int is_run(const GraphBound *b, int node)
{
    return b->calls[node].live && !b->calls[node].view;
}

static void give_outputs(const Memory *m, double *const *out)
{
    const Graph *g = m->b->graph;
    for (int i = 0; i < g->n_outputs; i++) {
        const GraphValue *v = &m->b->values[g->output[i]];
        walk_gather(&v->tensor, m->base[v->base], out[i]);
    }
}

int graph_run(const GraphBound *b, const double *const *in, double *const *out,
              const GraphHook *hook, Error *err)
{
    const Graph *g = b->graph;
    int rc = 0;
    if (enough_memory(b, err)) return -1;
    Memory m = memory_open(b);
    for (int i = 0; i < g->n_inputs; i++) m.base[i] = in[i];
    for (int node = 0; node < g->n_nodes && !rc; node++) {
        if (!is_run(b, node)) continue;
        rc = run_node(&m, node, hook, err);
        if (!rc) release_after(&m, node);
    }
    if (!rc) give_outputs(&m, out);
    memory_close(&m);
    return rc;
}

/* ---- again, with another input ---- */

/* What is written in place has other contents for each of its readers: every version is kept. */
struct GraphKept {
    Memory m;       /* at the end */
    double **first; /* by value: of a base, as it is first */
    double **after; /* by value: of a result in place, its base after it */
    int whole;      /* nothing is kept: every node runs again */
};

static int is_in_place(const GraphBound *b, int node)
{
    return is_run(b, node) && b->calls[node].call.op->flags & OP_IN_PLACE;
}

static int can_be_kept(const GraphBound *b)
{
    double bytes = 0;
    for (int v = 0; v < b->graph->n_values; v++) {
        int base = b->values[v].base, node = b->values[v].node;
        if (b->values[v].live && (base == v || (node >= 0 && is_in_place(b, node))))
            bytes += 8.0 * (double)b->values[base].extent;
    }
    return bytes <= GRAPH_KEPT_BYTES;
}

/* The base of a result in place is another array after it. */
static int keep_node(GraphKept *k, int node, Error *err)
{
    const GraphBound *b = k->m.b;
    int first = b->graph->first[node], in_place = is_in_place(b, node);
    for (int i = 0; i < b->calls[node].call.n_results && in_place; i++) {
        int base = b->values[first + i].base;
        if (base != first + i) k->m.own[base] = NULL; /* `first` or `after` has it */
    }
    int rc = run_node(&k->m, node, NULL, err);
    for (int i = 0; i < b->calls[node].call.n_results; i++) {
        int base = b->values[first + i].base;
        if (base == first + i)
            k->first[base] = k->m.own[base];
        else if (in_place)
            k->after[first + i] = k->m.own[base];
    }
    return rc;
}

int graph_keep(const GraphBound *b, const double *const *in, GraphKept **out, Error *err)
{
    const Graph *g = b->graph;
    size_t n = (size_t)g->n_values + 1;
    int rc = 0;
    if (enough_memory(b, err)) return -1;
    GraphKept *k = memory_alloc(sizeof *k);
    k->m = memory_open(b);
    k->first = memory_array(n, sizeof *k->first);
    k->after = memory_array(n, sizeof *k->after);
    k->whole = !can_be_kept(b);
    for (int i = 0; i < g->n_inputs; i++) k->m.base[i] = in[i];
    for (int node = 0; node < g->n_nodes && !rc && !k->whole; node++)
        if (is_run(b, node)) rc = keep_node(k, node, err);
    for (int i = 0; i < g->n_inputs; i++) k->m.base[i] = in[i];
    for (int v = g->n_inputs; v < g->n_values; v++) k->m.base[v] = k->first[v];
    if (rc)
        graph_kept_free(k);
    else
        *out = k;
    return rc;
}

void graph_kept_free(GraphKept *k)
{
    if (!k) return;
    for (int v = 0; v < k->m.b->graph->n_values; v++) free(k->first[v]), free(k->after[v]);
    free(k->first), free(k->after);
    free(k->m.own), free(k->m.base);
    free(k);
}

/* The base of what was written in place and has not changed. */
static void take_after(const GraphKept *k, int node, Memory *m)
{
    const GraphBound *b = m->b;
    for (int i = 0; i < b->calls[node].call.n_results; i++) {
        int v = b->graph->first[node] + i;
        if (k->after[v]) m->base[b->values[v].base] = k->after[v];
    }
}

/* Does a node read what has changed? Then its results have, and are no longer those that are kept. */
static int reads_changed(Memory *m, int node, char *changed)
{
    const GraphBound *b = m->b;
    const GraphCall *c = &b->calls[node];
    int reads = 0;
    for (int i = 0; i < c->call.n_tensors; i++) reads |= changed[b->values[c->in[i]].base];
    for (int i = 0; reads && i < c->call.n_results; i++) {
        int v = b->graph->first[node] + i;
        changed[b->values[v].base] = 1;
        if (b->values[v].base == v) m->base[v] = NULL;
    }
    return reads;
}

int graph_rerun(const GraphKept *k, int input, const double *elements, double *const *out,
                Error *err)
{
    const GraphBound *b = k->m.b;
    const Graph *g = b->graph;
    int rc = 0;
    Memory m = memory_open(b);
    char *changed = memory_array((size_t)g->n_values + 1, 1);
    memcpy(m.base, k->m.base, (size_t)g->n_values * sizeof *m.base);
    if (input >= 0) m.base[input] = elements, changed[input] = 1;
    for (int node = 0; node < g->n_nodes && !rc; node++) {
        if (!is_run(b, node)) continue;
        if (!k->whole && !reads_changed(&m, node, changed)) {
            take_after(k, node, &m);
            continue;
        }
        rc = run_node(&m, node, NULL, err);
        if (!rc) release_after(&m, node);
    }
    if (!rc) give_outputs(&m, out);
    free(changed);
    memory_close(&m);
    return rc;
}
