/* Binds a graph to axis values: shapes, views, what is live, and when memory is last used. Every view
 * is checked to stay inside its base, so that execution needs no check. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tasks/graph/graph.h"

typedef struct {
    GraphBound *b;
    int node; /* that is being bound: values from later nodes do not exist for it */
    ExprLookup *axis;
    void *ctx;
} Scope;

static int scope_axis(void *ctx, const char *name, size_t len, int64_t *value)
{
    const Scope *s = ctx;
    return s->axis ? s->axis(s->ctx, name, len, value) : -1;
}

static int scope_tensor(void *ctx, const char *name, size_t len, OpTensor *out)
{
    const Scope *s = ctx;
    int v = graph_find(s->b->graph, name, len);
    if (v < 0 || v >= s->b->graph->first[s->node]) return -1;
    *out = s->b->values[v].tensor;
    return v;
}

/* The elements of memory that a tensor spans from the base's first; -1: more than 2^48. */
static int64_t extent(const OpTensor *t)
{
    int64_t last = t->offset, step;
    if (!op_elements(t)) return 0;
    if (t->offset < 0 || t->offset >> 48) return -1;
    for (int i = 0; i < t->rank; i++) {
        if (t->stride[i] < 0 || __builtin_mul_overflow(t->size[i] - 1, t->stride[i], &step) ||
            __builtin_add_overflow(last, step, &last) || last >> 48)
            return -1;
    }
    return last + 1;
}

static int set_base(GraphBound *b, int value, int base, Error *err)
{
    GraphValue *v = &b->values[value];
    int64_t n = extent(&v->tensor);
    v->base = base;
    if (n < 0)
        return error_set(err, ERROR_LIMIT, "%s: its strides span 2^48 elements or more",
                         b->graph->name[value]);
    if (base == value)
        v->extent = n;
    else if (n > b->values[base].extent)
        return error_set(err, ERROR_INVALID, "%s: the view ends at element %lld of %lld",
                         b->graph->name[value], (long long)n, (long long)b->values[base].extent);
    return 0;
}

/* The value whose memory result i of a node is; -1: memory of its own. */
static int aliased(const GraphCall *c, int i)
{
    if (c->call.op->flags & OP_IN_PLACE)
        return c->call.arg[0].kind == OP_TENSOR ? c->in[c->call.arg[0].integer[0]] : -1;
    return c->call.view_of[i] >= 0 ? c->in[c->call.view_of[i]] : -1;
}

static int bind_results(GraphBound *b, int node, Error *err)
{
    GraphCall *c = &b->calls[node];
    const Op *op = c->call.op;
    c->view = !(op->flags & OP_IN_PLACE);
    for (int i = 0; i < c->call.n_results; i++) {
        int value = b->graph->first[node] + i, self = aliased(c, i);
        GraphValue *v = &b->values[value];
        *v = (GraphValue){.tensor = c->call.result[i], .node = node, .last = node};
        if (op->flags & OP_IN_PLACE) {
            if (self < 0 || v->tensor.dtype != b->values[self].tensor.dtype)
                return error_set(err, ERROR_INVALID, "%s: argument 1 is no tensor of its result",
                                 op->name);
            v->tensor = b->values[self].tensor;
        }
        if (self < 0) v->tensor.offset = 0, c->view = 0;
        if (set_base(b, value, self >= 0 ? b->values[self].base : value, err)) return -1;
    }
    return 0;
}

static int bind_node(GraphBound *b, int node, ExprLookup *axis, void *ctx, Error *err)
{
    Scope s = {b, node, axis, ctx};
    OpScope scope = {&s, scope_axis, scope_tensor};
    GraphCall *c = &b->calls[node];
    c->view = c->live = 0;
    if (op_line_call(&b->graph->line[node], &scope, &c->call, c->in, err) ||
        bind_results(b, node, err))
        return error_prefix(err, "graph[%d]", node);
    return 0;
}

/* Backwards: a node is live if a live value has its results' memory. A write in place makes what it
 * writes into live, because the rest of that memory stays. */
static void find_live(GraphBound *b)
{
    const Graph *g = b->graph;
    int *needed = memory_array((size_t)g->n_values + 1, sizeof *needed); /* by base */
    for (int i = 0; i < g->n_outputs; i++) needed[b->values[g->output[i]].base] = 1;
    for (int node = g->n_nodes - 1; node >= 0; node--) {
        GraphCall *c = &b->calls[node];
        for (int i = 0; i < c->call.n_results; i++)
            c->live |= needed[b->values[g->first[node] + i].base];
        for (int i = 0; c->live && i < c->call.n_tensors; i++) needed[b->values[c->in[i]].base] = 1;
    }
    for (int v = 0; v < g->n_values; v++) b->values[v].live = needed[b->values[v].base];
    free(needed);
}

static void find_last(GraphBound *b)
{
    const Graph *g = b->graph;
    for (int node = 0; node < g->n_nodes; node++) {
        const GraphCall *c = &b->calls[node];
        if (!c->live || c->view) continue; /* it is not executed */
        for (int i = 0; i < c->call.n_tensors; i++) b->values[b->values[c->in[i]].base].last = node;
        for (int i = 0; i < c->call.n_results; i++)
            b->values[b->values[g->first[node] + i].base].last = node;
    }
    for (int i = 0; i < g->n_outputs; i++)
        b->values[b->values[g->output[i]].base].last = g->n_nodes;
}

/* Forwards: which contents depend on an input. A view's are those of what it is a view of. */
static void find_varying(GraphBound *b)
{
    const Graph *g = b->graph;
    for (int v = 0; v < g->n_inputs; v++) b->values[v].varies = 1;
    for (int node = 0; node < g->n_nodes; node++) {
        const GraphCall *c = &b->calls[node];
        int varies = 0;
        for (int i = 0; i < c->call.n_tensors; i++)
            varies |= b->values[b->values[c->in[i]].base].varies;
        if (c->call.op->flags & OP_CONSTANT || c->view) varies = 0;
        for (int i = 0; i < c->call.n_results; i++) {
            GraphValue *v = &b->values[g->first[node] + i], *base = &b->values[v->base];
            base->varies |= varies;
            v->varies = base->varies;
        }
    }
}

static void find_peak(GraphBound *b)
{
    const Graph *g = b->graph;
    double now = 0;
    double *freed = memory_array((size_t)g->n_nodes + 1, sizeof *freed);
    for (int v = g->n_inputs; v < g->n_values; v++)
        if (b->values[v].base == v && b->values[v].live)
            freed[b->values[v].last] += 8.0 * (double)b->values[v].extent;
    for (int node = 0; node < g->n_nodes; node++) {
        double scratch = 0; /* arguments and results that are not in C order */
        const GraphCall *c = &b->calls[node];
        if (!c->live || c->view) continue;
        for (int i = 0; i < c->call.n_tensors; i++)
            scratch += 8.0 * (double)op_elements(&c->call.tensor[i]);
        for (int i = 0; i < c->call.n_results; i++) {
            int v = g->first[node] + i;
            scratch += 8.0 * (double)op_elements(&c->call.result[i]);
            if (b->values[v].base == v) now += 8.0 * (double)b->values[v].extent;
        }
        b->peak = fmax(b->peak, now + scratch);
        now -= freed[node];
    }
    free(freed);
}

int graph_bind(const Graph *g, ExprLookup *axis, void *ctx, const OpTensor *inputs,
               GraphBound **out, Error *err)
{
    GraphBound *b = memory_alloc(sizeof *b);
    b->graph = g;
    b->values = memory_array((size_t)g->n_values + 1, sizeof *b->values);
    b->calls = memory_grow(NULL, (size_t)g->n_nodes, sizeof *b->calls);
    int rc = 0;
    for (int i = 0; i < g->n_inputs && !rc; i++) {
        b->values[i] = (GraphValue){.tensor = inputs[i], .node = -1};
        rc = set_base(b, i, i, err);
    }
    for (int node = 0; node < g->n_nodes && !rc; node++) rc = bind_node(b, node, axis, ctx, err);
    if (rc) {
        graph_bound_free(b);
        return -1;
    }
    find_live(b);
    find_last(b);
    find_varying(b);
    find_peak(b);
    *out = b;
    return 0;
}

void graph_bound_free(GraphBound *b)
{
    if (!b) return;
    free(b->values);
    free(b->calls);
    free(b);
}

/* ---- cost ---- */

static double bytes_of(const OpTensor *t)
{
    double n = 1;
    for (int i = 0; i < t->rank; i++)
        if (t->stride[i] || t->size[i] == 0) n *= (double)t->size[i]; /* expanded: once */
    return n * (double)dtype_size(t->dtype);
}

/* Notes for each input the most that one call reads of it. Where the family says that the call moves
 * less than its tensors, all of the difference is taken from the input: the sum stays a least one. */
static int inputs_read(const GraphBound *b, const GraphCall *c, const OpCost *cost, double *read)
{
    double all = 0;
    for (int i = 0; i < c->call.n_tensors; i++)
        all +=
            (double)op_elements(&c->call.tensor[i]) * (double)dtype_size(c->call.tensor[i].dtype);
    for (int i = 0; i < c->call.n_results; i++)
        all +=
            (double)op_elements(&c->call.result[i]) * (double)dtype_size(c->call.result[i].dtype);
    double less = fmax(0, all - cost->bytes);
    for (int i = 0; i < c->call.n_tensors; i++) {
        int base = b->values[c->in[i]].base;
        if (base >= b->graph->n_inputs) continue;
        double whole =
            (double)b->values[base].extent * (double)dtype_size(b->values[base].tensor.dtype);
        read[base] = fmax(read[base], fmin(whole, bytes_of(&c->call.tensor[i]) - less));
    }
    return 0;
}

int graph_cost(const GraphBound *b, OpCost *out, Error *err)
{
    const Graph *g = b->graph;
    double *read = memory_array((size_t)g->n_inputs + 1, sizeof *read);
    int rc = 0;
    *out = (OpCost){0};
    for (int node = 0; node < g->n_nodes && !rc; node++) {
        const GraphCall *c = &b->calls[node];
        OpCost cost;
        if (!c->live || c->view || c->call.op->flags & OP_CONSTANT) continue;
        if ((rc = op_cost(&c->call, &cost, err))) break;
        int varies = 0;
        for (int i = 0; i < c->call.n_results; i++) varies |= b->values[g->first[node] + i].varies;
        if (varies) out->flops += cost.flops;
        rc = inputs_read(b, c, &cost, read);
    }
    for (int i = 0; i < g->n_outputs; i++) {
        const GraphValue *v = &b->values[g->output[i]];
        out->bytes += (double)op_elements(&v->tensor) * (double)dtype_size(v->tensor.dtype);
        if (v->base < g->n_inputs) /* a view of an input: what it shows is read */
            read[v->base] = fmax(read[v->base], bytes_of(&v->tensor));
    }
    for (int i = 0; i < g->n_inputs; i++) out->bytes += read[i];
    free(read);
    return rc;
}
