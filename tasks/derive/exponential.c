/* Measures the largest exponential of a running sum at full length, and chooses draws by it. */
#include "tasks/derive/exponential.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tasks/derive/sizes.h"
#include "tasks/derive/trial.h"

enum { CALMER = 8, TIMES = 3 };
static const double MAX_EXPONENTIAL = 1e4;
static const double SCAN_FLOPS = DERIVE_WIDE_FLOPS / 4; /* of one execution */

static int is_scan(const GraphCall *c)
{
    return !strcmp(c->call.op->name, "aten.cumsum.default");
}

static int is_exponential(const GraphCall *c)
{
    return !strncmp(c->call.op->name, "aten.exp.", 9) ||
           !strncmp(c->call.op->name, "aten.exp_.", 10);
}

/* By base: bit 0, it depends on the input; bit 1, on a running sum of it. */
static void spread(const GraphBound *b, int input, char *reached)
{
    const Graph *g = b->graph;
    memset(reached, 0, (size_t)g->n_values);
    for (int i = 0; i < g->n_inputs; i++) reached[i] = input < 0 || i == input;
    for (int node = 0; node < g->n_nodes; node++) {
        const GraphCall *c = &b->calls[node];
        char any = 0;
        for (int i = 0; i < c->call.n_tensors; i++) any |= reached[b->values[c->in[i]].base];
        if (any && is_scan(c)) any |= 2;
        for (int i = 0; i < c->call.n_results; i++)
            reached[b->values[g->first[node] + i].base] |= any;
    }
}

/* Is a running sum of the input exponentiated? input -1: of any. */
static int exponentiates(const GraphBound *b, int input)
{
    char *reached = memory_array((size_t)b->graph->n_values + 1, 1);
    int any = 0;
    spread(b, input, reached);
    for (int node = 0; node < b->graph->n_nodes; node++) {
        const GraphCall *c = &b->calls[node];
        any |= c->live && is_exponential(c) && reached[b->values[c->in[0]].base] & 2;
    }
    free(reached);
    return any;
}

typedef struct {
    const char *reached;
    double largest; /* infinity: it is no number */
    int node;
} Largest;

static int find_largest(void *ctx, const GraphStep *s, Error *err)
{
    const GraphCall *c = &s->b->calls[s->node];
    const double *y = s->out[0];
    Largest *l = ctx;
    (void)err;
    if (!is_exponential(c) || !(l->reached[s->b->values[c->in[0]].base] & 2)) return 0;
    for (int64_t k = 0; k < op_elements(&c->call.result[0]); k++)
        if (!(y[k] <= l->largest)) l->largest = isnan(y[k]) ? INFINITY : y[k], l->node = s->node;
    return 0;
}

/* Returns the largest, 0 where there is none, and its node. */
static double largest_exponential(const Derivation *v, const Sizes *s, int *node)
{
    Trial t;
    if (trial_open(&t, v, s, 1, NULL, NULL)) return 0;
    char *reached = memory_array((size_t)t.b->graph->n_values + 1, 1);
    Largest l = {reached, 0, 0};
    GraphHook hook = {&l, NULL, find_largest};
    spread(t.b, -1, reached);
    if (trial_run(&t, &hook, NULL))
        l.largest = 0; /* which an execution behind this one says better */
    trial_close(&t);
    free(reached);
    *node = l.node;
    return l.largest;
}

/* Returns whether there is an input to be calmed. */
static int calm(Derivation *v, const GraphBound *b)
{
    int any = 0;
    for (int i = 0; i < v->draft.n_inputs; i++) {
        DraftTensor *x = &v->inputs[i];
        if (!dtype_is_float(x->dtype) || x->draw != DRAW_NORMAL || !exponentiates(b, i)) continue;
        x->mean /= CALMER, x->std /= CALMER;
        x->fixed |= !x->parameter;
        any = 1;
    }
    return any;
}

/* Parameters alone are calmed where a tolerance tells nothing, with all others. */
static int is_fed_by_argument(const Derivation *v, const GraphBound *b)
{
    int any = 0;
    for (int i = 0; i < v->draft.n_inputs; i++)
        any |= !v->inputs[i].parameter && exponentiates(b, i);
    return any;
}

int exponential_calm(Derivation *v, const Sizes *time, Error *err)
{
    GraphBound *b;
    Sizes whole;
    double largest = 0;
    int node = 0;
    if (derivation_bind(v, time, &b, NULL)) return 0;
    if (is_fed_by_argument(v, b)) {
        sizes_long(v, time, SCAN_FLOPS, &whole);
        largest = largest_exponential(v, &whole, &node);
        for (int k = 0; k < TIMES && largest > MAX_EXPONENTIAL && calm(v, b); k++)
            largest = largest_exponential(v, &whole, &node);
    }
    graph_bound_free(b);
    if (largest <= MAX_EXPONENTIAL) return 0;
    return error_set(
        err, ERROR_UNSUPPORTED,
        "graph[%d]: an exponential of a running sum reaches %.0e at the timed sizes, and no "
        "tolerance holds for it and for the others",
        node, largest);
}

void exponential_deepen(const Derivation *v, const Sizes *time, Sizes *deep)
{
    GraphBound *t, *d;
    if (derivation_bind(v, time, &t, NULL)) return;
    if (!derivation_bind(v, deep, &d, NULL)) {
        if (exponentiates(t, -1) && sizes_scan(d) < sizes_scan(t))
            sizes_long(v, time, SCAN_FLOPS, deep);
        graph_bound_free(d);
    }
    graph_bound_free(t);
}
