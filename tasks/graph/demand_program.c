/* Values of a chain are numbered by the chain; those of the graph by the graph. Both have an array and a
 * tensor that says how they lie in it. */
#include "tasks/graph/demand_program.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/op_chain.h"

enum { CHAIN_VALUES = 128 };

typedef struct {
    int array;
    OpTensor tensor;
} Placed;

typedef struct {
    const GraphBound *b;
    Program *p;
    int *now; /* by base: the array of its contents */
} Builder;

static int is_whole(const OpTensor *t, int64_t extent)
{
    OpTensor plain = *t;
    op_contiguous(&plain);
    if (t->offset || op_elements(t) != extent) return 0;
    for (int i = 0; i < t->rank; i++)
        if (t->size[i] > 1 && plain.stride[i] != t->stride[i]) return 0;
    return 1;
}

static int add_array(Program *p, int64_t extent)
{
    p->extent = memory_grow(p->extent, (size_t)p->n_arrays + 1, sizeof *p->extent);
    p->extent[p->n_arrays] = extent;
    return p->n_arrays++;
}

static Step *add_step(Program *p, StepKind kind, int n_in)
{
    p->step = memory_grow(p->step, (size_t)p->n_steps + 1, sizeof *p->step);
    Step *s = &p->step[p->n_steps++];
    *s = (Step){.kind = kind, .n_in = n_in, .in = memory_array((size_t)n_in + 1, sizeof *s->in)};
    return s;
}

/* The array that has v's elements alone, in C order. */
static int dense(Program *p, const Placed *v)
{
    if (is_whole(&v->tensor, p->extent[v->array])) return v->array;
    int to = add_array(p, op_elements(&v->tensor));
    Step *s = add_step(p, STEP_COPY, 1);
    s->view = v->tensor;
    s->in[0] = v->array;
    s->out = to;
    return to;
}

/* Adds the step of a call, and an array for each result. */
static Step *add_call(Program *p, OpCall *c, const int *in, int own)
{
    Step *s = add_step(p, STEP_CALL, c->n_tensors);
    s->call = c;
    s->own = own;
    s->out = p->n_arrays;
    memcpy(s->in, in, (size_t)c->n_tensors * sizeof *in);
    for (int r = 0; r < c->n_results; r++) add_array(p, op_elements(&c->result[r]));
    return s;
}

/* ---- chains ---- */

typedef struct {
    Program *p;
    const int *in; /* the arrays of the call's tensors */
    const OpCall *call;
    Placed value[CHAIN_VALUES];
} Expansion;

static int expand(Program *p, OpCall *c, const int *in, int own, Placed *result, Error *err);

static int see(void *of, const ChainSeen *s, Error *err)
{
    Expansion *x = of;
    int in[OP_MAX_TENSORS], results = s->step ? s->step->n_results : 1;
    if (s->value + results > CHAIN_VALUES)
        return error_set(err, ERROR_LIMIT, "an operator has too many values");
    Placed *first = &x->value[s->value];
    if (!s->step) {
        *first = (Placed){x->in[s->input], x->call->tensor[s->input]};
        return 0;
    }
    int views = 0;
    for (int r = 0; r < results; r++) {
        int of_input = s->step->view_of[r];
        if (of_input < 0 || s->step->op->flags & OP_IN_PLACE) continue;
        first[r] = (Placed){x->value[s->operand[of_input]].array, s->step->result[r]};
        views++;
    }
    if (views == results) return 0;
    for (int t = 0; t < s->step->n_tensors; t++) in[t] = dense(x->p, &x->value[s->operand[t]]);
    OpCall *own = memory_alloc(sizeof *own);
    *own = *s->step;
    return expand(x->p, own, in, 1, first, err);
}

/* The results of a call whose inputs are these arrays. own: c becomes the program's. */
static int expand(Program *p, OpCall *c, const int *in, int own, Placed *result, Error *err)
{
    Expansion *x = memory_alloc(sizeof *x);
    OpCall *logical = memory_alloc(sizeof *logical);
    *logical = *c;
    for (int i = 0; i < logical->n_tensors; i++) op_contiguous(&logical->tensor[i]);
    *x = (Expansion){.p = p, .in = in, .call = logical};
    int y = chain_visit(logical, &(ChainVisitor){x, see}, err), rc = y == -1 ? -1 : 0;
    if (y >= 0) {
        result[0] = x->value[y];
        if (own) free(c);
    } else if (!rc) {
        Step *s = add_call(p, c, in, own);
        for (int r = 0; r < c->n_results; r++) {
            if (c->view_of[r] >= 0 && !(c->op->flags & OP_IN_PLACE)) continue;
            result[r] = (Placed){s->out + r, c->result[r]};
            op_contiguous(&result[r].tensor);
        }
    } else if (own) {
        free(c);
    }
    free(logical);
    free(x);
    return rc;
}

/* ---- the graph ---- */

static Placed placed(const Builder *k, int value)
{
    const GraphValue *v = &k->b->values[value];
    return (Placed){k->now[v->base], v->tensor};
}

/* Value v of the graph has its contents in array r->array from now on. */
static void put(Builder *k, int v, const Placed *r)
{
    const GraphValue *value = &k->b->values[v];
    Program *p = k->p;
    int base = value->base, array = dense(p, r);
    if (base == v || is_whole(&value->tensor, p->extent[k->now[base]])) {
        k->now[base] = array;
        return;
    }
    int to = add_array(p, p->extent[k->now[base]]);
    Step *s = add_step(p, STEP_OVERLAY, 2);
    s->view = value->tensor;
    s->in[0] = k->now[base], s->in[1] = array;
    s->out = to;
    k->now[base] = to;
}

static int add_node(Builder *k, int node, Error *err)
{
    GraphCall *g = &k->b->calls[node];
    OpCall *c = &g->call;
    int in[OP_MAX_TENSORS], first = k->b->graph->first[node];
    Placed result[OP_MAX_RESULTS];
    for (int i = 0; i < c->n_tensors; i++) {
        Placed v = placed(k, g->in[i]);
        in[i] = dense(k->p, &v);
    }
    if (expand(k->p, c, in, 0, result, err)) return -1;
    for (int r = 0; r < c->n_results; r++)
        if (k->b->values[first + r].base == first + r || c->op->flags & OP_IN_PLACE)
            put(k, first + r, &result[r]);
    return 0;
}

int program_of(const GraphBound *b, Program *out, Error *err)
{
    const Graph *g = b->graph;
    Builder k = {b, out, memory_array((size_t)g->n_values + 1, sizeof(int))};
    int rc = 0;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < g->n_inputs; i++) k.now[i] = add_array(out, b->values[i].extent);
    for (int node = 0; node < g->n_nodes && !rc; node++)
        if (b->calls[node].live && !b->calls[node].view) rc = add_node(&k, node, err);
    for (int i = 0; i < g->n_outputs && !rc; i++) {
        Placed y = placed(&k, g->output[i]);
        out->output[i] = dense(out, &y);
    }
    free(k.now);
    if (rc) program_free(out);
    return rc;
}

void program_free(Program *p)
{
    for (int i = 0; i < p->n_steps; i++) {
        if (p->step[i].own) free(p->step[i].call);
        free(p->step[i].in);
    }
    free(p->step);
    free(p->extent);
    memset(p, 0, sizeof *p);
}

/* Dimensions from the farthest steps to the nearest: each coordinate is what the steps before leave. */
int64_t program_shows(const OpTensor *view, int64_t at)
{
    int64_t coordinate[OP_MAX_RANK] = {0}, place = 0;
    char used[OP_MAX_RANK] = {0};
    at -= view->offset;
    for (int k = 0; k < view->rank; k++) {
        int d = -1;
        for (int i = 0; i < view->rank; i++)
            if (!used[i] && (d < 0 || view->stride[i] > view->stride[d])) d = i;
        used[d] = 1;
        if (view->size[d] == 1 || view->stride[d] <= 0) continue;
        if (at < 0) return -1;
        coordinate[d] = at / view->stride[d];
        if (coordinate[d] >= view->size[d]) return -1;
        at -= coordinate[d] * view->stride[d];
    }
    if (at) return -1;
    for (int d = 0; d < view->rank; d++) place = place * view->size[d] + coordinate[d];
    return place;
}
