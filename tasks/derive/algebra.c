/* Properties of a graph, found by rules on its operators and by executing it on other inputs. */
#include "tasks/derive/algebra.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/op_reduction.h"
#include "tasks/derive/sizes.h"
#include "tasks/derive/trial.h"

static int is_named(const Op *op, const char *const *names)
{
    for (; *names; names++) {
        size_t len = strlen(*names);
        if (!strncmp(op->name + 5, *names, len) && (op->name[5 + len] == '.' || !op->name[5 + len]))
            return 1;
    }
    return 0;
}

static const char *const products[] = {"mm", "bmm", "matmul", "linear", "einsum", NULL};
static const char *const sums[] = {"sum", "mean", NULL};

static int64_t value_elements(const Trial *t, int value)
{
    return op_elements(&t->b->values[value].tensor);
}

/* ---- rotations ---- */

/* Of one execution: the gate is the first to turn the inputs of a costlier graph. */
static const double UNPROVEN_FLOPS = 5e7;

static int leads(const DraftTensor *x, const char *axis)
{
    return x->rank && !strcmp(x->shape[0], axis);
}

static void rotate(double *x, int64_t n, int64_t step)
{
    double *first = memory_array((size_t)step, sizeof *first);
    memcpy(first, x, (size_t)step * sizeof *x);
    memmove(x, x + step, (size_t)(n - step) * sizeof *x);
    memcpy(x + n - step, first, (size_t)step * sizeof *x);
    free(first);
}

static int rotation_holds(const Derivation *v, const Sizes *s, int axis)
{
    const char *name = v->axes[axis].name;
    Trial a, b;
    int holds = 1;
    if (trial_open(&a, v, s, 1, NULL, NULL)) return 0;
    if (trial_open(&b, v, s, 1, &a, NULL)) return trial_close(&a), 0;
    for (int i = 0; i < a.n_inputs; i++) {
        int64_t n = value_elements(&b, i);
        if (leads(&v->inputs[i], name)) rotate(b.in[i], n, n / s->at[axis]);
    }
    holds = !trial_run(&a, NULL, NULL) && !trial_run(&b, NULL, NULL);
    for (int i = 0; i < a.n_outputs && holds; i++) {
        int64_t n = value_elements(&a, v->graph->output[i]), step = n / s->at[axis];
        for (int64_t k = 0; k < n && holds; k++) {
            double want = a.out[i][(k + step) % n];
            holds = fabs(b.out[i][k] - want) <= 1e-9 * (1 + fabs(want));
        }
    }
    trial_close(&a);
    trial_close(&b);
    return holds;
}

/* unproven: the first that the shapes allow. */
static int find_rotates(const Derivation *v, const Sizes *s, int unproven)
{
    for (int axis = 0; axis < v->draft.n_axes; axis++) {
        int all = s->at[axis] > 1;
        for (int i = 0; i < v->draft.n_outputs; i++)
            all &= leads(&v->outputs[i], v->axes[axis].name);
        if (all && (unproven || rotation_holds(v, s, axis))) return 1 + axis;
    }
    return 0;
}

/* ---- exact sums ---- */

static int64_t call_terms(const Derivation *v, const GraphBound *b, const void *what)
{
    (void)v;
    return sizes_call_terms(&b->calls[*(const int *)what]);
}

/* One product or sum of inputs in float32 and nothing else. */
static int exact_node(const Derivation *v, const GraphBound *b)
{
    int found = -1;
    for (int i = 0; i < v->draft.n_inputs; i++)
        if (v->inputs[i].dtype != DTYPE_F32 || v->inputs[i].parameter) return -1;
    for (int node = 0; node < v->graph->n_nodes; node++) {
        const GraphCall *c = &b->calls[node];
        static const char *const sum[] = {"sum", NULL};
        if (!c->live || c->view) continue;
        int product = is_named(c->call.op, products) && c->call.n_tensors <= 2;
        if (found >= 0 || !(product || is_named(c->call.op, sum))) return -1;
        for (int i = 0; i < c->call.n_tensors; i++)
            if (b->values[c->in[i]].base >= b->graph->n_inputs) return -1;
        if (product &&
            (c->call.n_tensors < 2 || b->values[c->in[0]].base == b->values[c->in[1]].base))
            return -1; /* the integers of one input are drawn for sums, not for sums of squares */
        found = node;
    }
    return found;
}

static const Sizes *early_check(const Description *d)
{
    const Sizes *s = NULL;
    for (int i = 0; i < d->n; i++)
        if (d->at[i].role == ROLE_CHECK && (!s || i < 3)) s = &d->at[i].sizes;
    return s;
}

void algebra_rotates(const Derivation *v, Description *d)
{
    d->rotates = find_rotates(v, early_check(d), 0);
}

int algebra_extremes(const Derivation *v, Description *d, Error *err)
{
    const Sizes *s = early_check(d);
    GraphBound *b;
    if (!s || derivation_bind(v, s, &b, err)) return -1;
    d->rotates = find_rotates(v, s, sizes_flops(b) > UNPROVEN_FLOPS);
    int node = exact_node(v, b);
    if (node >= 0) d->exact = derivation_expression(v, call_terms, &node, NULL, 0);
    graph_bound_free(b);
    return 0;
}

/* ---- work that algebra removes ---- */

/* Less of the work than this may be constant: the first step of a loop whose state begins with zeros. */
static const double SOME_WORK = 0.125;

/* Keeps every result of one execution, and compares another with them. */
typedef struct {
    double **kept; /* by value */
    char *moved;   /* by value: another execution gave other numbers */
    int compare;
} Watch;

static int watch(void *ctx, const GraphStep *s, Error *err)
{
    Watch *w = ctx;
    const GraphCall *c = &s->b->calls[s->node];
    (void)err;
    for (int i = 0; i < c->call.n_results; i++) {
        int value = s->b->graph->first[s->node] + i;
        int64_t n = op_elements(&c->call.result[i]);
        if (!w->compare) {
            w->kept[value] = memory_array((size_t)n + 1, sizeof(double));
            memcpy(w->kept[value], s->out[i], (size_t)n * sizeof(double));
        }
        for (int64_t k = 0; k < n && w->compare && !w->moved[value]; k++) {
            double a = w->kept[value][k], x = s->out[i][k];
            w->moved[value] = fabs(a - x) > 1e-9 * (fabs(a) + fabs(x)) + 1e-12 && !isnan(x - a);
        }
    }
    return 0;
}

/* By node: its results were the same in all trials. Returns the first; -1: there is none. */
static int still_nodes(const GraphBound *b, const char *moved, char *still)
{
    static const char *const fills[] = {"fill_", "zero_", NULL}; /* of memory that also varies */
    int first = -1;
    for (int node = b->graph->n_nodes - 1; node >= 0; node--) {
        const GraphCall *c = &b->calls[node];
        int value = b->graph->first[node], any = 0;
        still[node] = 0;
        if (!c->live || c->view || !b->values[value].varies) continue;
        if (c->call.op->flags & OP_CONSTANT || is_named(c->call.op, fills)) continue;
        for (int i = 0; i < c->call.n_results; i++)
            any |= moved[value + i] || !b->values[value + i].live;
        if (!any) still[node] = 1, first = node;
    }
    return first;
}

/* The first node between an output and the inputs whose results are the same for all of them; -1: there is
 * none; -2: an error. */
static int constant_nodes(const Derivation *v, const Sizes *s, char *still, Error *err)
{
    size_t n = (size_t)v->graph->n_values + 1;
    Watch w = {memory_array(n, sizeof *w.kept), memory_array(n, 1), 0};
    GraphHook hook = {&w, NULL, watch};
    int rc = 0, found = 0;
    for (uint64_t seed = 1; seed <= 3 && !rc && found >= 0; seed++) {
        Trial t;
        w.compare = seed > 1;
        if ((rc = trial_open(&t, v, s, seed, NULL, err))) break;
        rc = trial_run(&t, &hook, err);
        if (!rc && w.compare) found = still_nodes(t.b, w.moved, still);
        trial_close(&t);
    }
    for (size_t i = 0; i < n; i++) free(w.kept[i]);
    free(w.kept);
    free(w.moved);
    return rc ? -2 : found;
}

/* What part of the elements that all nodes read and write only still nodes need. */
static double removed_share(const GraphBound *b, const char *still)
{
    const Graph *g = b->graph;
    char *needed = memory_array((size_t)g->n_values + 1, 1);
    double all = 0, left = 0;
    for (int i = 0; i < g->n_outputs; i++) needed[b->values[g->output[i]].base] = 1;
    for (int node = g->n_nodes - 1; node >= 0; node--) {
        const GraphCall *c = &b->calls[node];
        double elements = 0;
        int is_needed = 0;
        for (int i = 0; i < c->call.n_results; i++) {
            is_needed |= needed[b->values[g->first[node] + i].base];
            elements += (double)op_elements(&c->call.result[i]);
        }
        for (int i = 0; i < c->call.n_tensors; i++)
            elements += (double)op_elements(&c->call.tensor[i]);
        if (c->live && !c->view) all += elements;
        if (!is_needed || still[node]) continue;
        for (int i = 0; i < c->call.n_tensors; i++) needed[b->values[c->in[i]].base] = 1;
        if (!c->view) left += elements;
    }
    free(needed);
    return all > 0 ? 1 - left / all : 0;
}

/* The node that computes a value, through scalings and additions of what does not vary with the summed
 * index: here only products and quotients by numbers, and views. */
static int source_node(const GraphBound *b, int value)
{
    static const char *const scalings[] = {"mul", "div", "neg", "multiply", NULL};
    for (int steps = 0; steps < 16 && value >= b->graph->n_inputs; steps++) {
        int node = b->values[b->values[value].base].node;
        if (node < 0) return -1; /* a view of an input */
        const GraphCall *c = &b->calls[node];
        if (!is_named(c->call.op, scalings) || c->call.n_tensors != 1) return node;
        value = c->in[0];
    }
    return -1;
}

static int64_t reduced_elements(const GraphCall *c)
{
    Reduction r;
    return reduction_of(&c->call, 1, &r, NULL) ? 1 : r.inputs;
}

/* A sum over the elements of a product is a smaller product with a sum. */
static int summed_product(const GraphBound *b, int node)
{
    const GraphCall *c = &b->calls[node];
    if (!c->live || !is_named(c->call.op, sums) || reduced_elements(c) < 2) return 0;
    int source = source_node(b, c->in[0]);
    return source >= 0 && is_named(b->calls[source].call.op, products);
}

static int diagonal_product(const GraphBound *b, int node)
{
    static const char *const diagonals[] = {"diag", "diag_embed", NULL};
    const GraphCall *c = &b->calls[node];
    if (!c->live || !is_named(c->call.op, products)) return 0;
    for (int i = 0; i < c->call.n_tensors; i++) {
        int source = b->values[b->values[c->in[i]].base].node;
        if (source >= 0 && is_named(b->calls[source].call.op, diagonals)) return 1;
    }
    return 0;
}

static char *line_text(const Derivation *v, int node, const char *what)
{
    const char *name = v->graph->line[node].op->name + strlen("aten.");
    return memory_printf("graph[%d], %.*s: %s", node, (int)strcspn(name, "."), name, what);
}

int algebra_degenerate(const Derivation *v, Description *d, Error *err)
{
    GraphBound *b;
    int timed = 0;
    const Sizes *s = NULL, *time = &d->at[0].sizes;
    for (int i = 0; i < d->n; i++) {
        if (d->at[i].role == ROLE_CHECK) s = &d->at[i].sizes;
        if (d->at[i].role == ROLE_TIME && !timed++) time = &d->at[i].sizes;
    }
    char *reason = NULL, *still = memory_array((size_t)v->graph->n_nodes + 1, 1);
    int node = constant_nodes(v, s, still, err);
    if (node == -2 || derivation_bind(v, time, &b, err)) {
        free(still);
        return -1;
    }
    if (node >= 0 && removed_share(b, still) > SOME_WORK)
        reason = line_text(v, node, "its result is the same for all inputs");
    for (int i = 0; i < v->graph->n_nodes && !reason; i++) {
        if (summed_product(b, i))
            reason = line_text(v, i, "the sum of a product's elements needs no product");
        else if (diagonal_product(b, i))
            reason = line_text(v, i, "a factor of the product is diagonal");
    }
    if (reason) description_degenerate(d, reason);
    free(reason);
    free(still);
    graph_bound_free(b);
    return 0;
}
