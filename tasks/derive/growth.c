/* The extent of a graph at two sizes, and how errors grow from one to the other. */
#include "tasks/derive/growth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tasks/derive/honest.h"
#include "tasks/derive/honest_sums.h"

enum { HALVINGS = 10, SHORTER = 4, LEAST_TERMS = 16 };
static const double EXPONENT_MARGIN = 0.1, MOST_EXPONENT = 1.5;

typedef struct {
    double terms, elements;
} Extent;

/* The longest sum, and how many errors do not depend on each other: those along a running sum are one
 * random walk. */
static Extent extent_of(const Derivation *v, const Sizes *s)
{
    GraphBound *b;
    double n = 0;
    if (derivation_bind(v, s, &b, NULL)) return (Extent){1, 1};
    for (int i = 0; i < v->draft.n_outputs; i++)
        n += (double)op_elements(&b->values[v->graph->output[i]].tensor);
    Extent e = {(double)sizes_terms(b), n / sizes_scan(b)};
    graph_bound_free(b);
    return e;
}

int64_t growth_terms(const Derivation *v, const Sizes *at)
{
    return (int64_t)extent_of(v, at).terms;
}

/* About how many standard deviations the largest of n normal errors is. */
static double deviations(double n)
{
    return sqrt(2 * log(2 + n));
}

/* An error grows with a power of the number of terms while one running sum may have them all: sums of terms
 * of both signs by 1, of positive ones by 1.5, means by less. The errors of several running sums are
 * independent: beyond, the power is a half less, and at most a half. The largest of more errors is larger. */
static HonestGrowth growth(Extent to, Extent from, double exponent)
{
    double max = HONEST_DRIFT_MAX, running = fmax(1, fmin(to.terms, max) / fmin(from.terms, max)),
           beyond = fmax(1, to.terms / fmax(from.terms, max)),
           after = fmax(0, fmin(exponent - 0.5, 0.5));
    double extreme = deviations(to.elements) / deviations(from.elements);
    return (HonestGrowth){.by = pow(running, exponent) * pow(beyond, after) * fmax(1, extreme),
                          .elements = to.elements / from.elements};
}

/* ---- sums that follow each other ---- */

/* How large the elements of a value are, as variances add up, and how many products with longer sums are on
 * its path. Negative: not known. */
typedef struct {
    double size;
    int depth;
} Chain;

static double drawn_size(const DraftTensor *x)
{
    if (x->draw == DRAW_NORMAL) return hypot(x->mean, x->std);
    if (x->draw == DRAW_UNIFORM)
        return sqrt((x->low * x->low + x->low * x->high + x->high * x->high) / 3);
    return -1;
}

static int is_one_of(const Op *op, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(op->name, names[i])) return 1;
    return 0;
}

/* Of a product with two factors and perhaps a bias, and of what keeps the size of its argument. */
static double size_of(const GraphCall *c, const Chain *values)
{
    static const char *const products[] = {"aten.linear.default", "aten.mm.default",
                                           "aten.bmm.default", "aten.matmul.default", NULL};
    static const char *const keeps[] = {"aten.relu.default",
                                        "aten.relu_.default",
                                        "aten.leaky_relu.default",
                                        "aten.gelu.default",
                                        "aten.silu.default",
                                        "aten.dropout.default",
                                        NULL};
    const OpCall *call = &c->call;
    double x = call->n_tensors > 0 ? values[c->in[0]].size : -1,
           w = call->n_tensors > 1 ? values[c->in[1]].size : 0,
           b = call->n_tensors > 2 ? values[c->in[2]].size : 0;
    if (x < 0 || w < 0 || b < 0) return -1;
    if (c->view || is_one_of(call->op, keeps)) return x;
    if (!is_one_of(call->op, products)) return -1;
    return hypot(x * w * sqrt((double)sizes_call_terms(c)), b);
}

/* By how much the largest output is larger, and errors relative to it: each sum's grow with the root of its
 * terms, and those of all add up. 0: there are not two such sums, or the sizes are not known. */
static double chain_growth(const Derivation *v, const GraphBound *to, const GraphBound *from)
{
    const Graph *g = to->graph;
    const GraphBound *both[2] = {to, from};
    Chain *values[2];
    double terms[2] = {1, 1}, size[2] = {0, 0};
    int depth = 0, known = 1;
    for (int k = 0; k < 2; k++) {
        Chain *at = values[k] = memory_array((size_t)g->n_values + 1, sizeof *at);
        for (int i = 0; i < g->n_inputs; i++) at[i].size = drawn_size(&v->inputs[i]);
        for (int node = 0; node < g->n_nodes; node++) {
            const GraphCall *c = &both[k]->calls[node];
            Chain r = {.size = size_of(c, at)};
            int longer = sizes_call_terms(&to->calls[node]) > sizes_call_terms(&from->calls[node]);
            for (int i = 0; i < c->call.n_tensors; i++)
                if (at[c->in[i]].depth > r.depth) r.depth = at[c->in[i]].depth;
            r.depth += longer && op_is_product(c->call.op);
            for (int i = 0; i < c->call.n_results; i++) at[g->first[node] + i] = r;
            if (op_is_product(c->call.op)) terms[k] += (double)sizes_call_terms(c);
        }
        for (int i = 0; i < g->n_outputs; i++) {
            const Chain *y = &at[g->output[i]];
            known &= y->size > 0;
            if (y->size > size[k]) size[k] = y->size;
            if (y->depth > depth) depth = y->depth;
        }
        free(at);
    }
    return known && depth > 1 ? size[0] / size[1] * sqrt(fmax(1, terms[0] / terms[1])) : 0;
}

static double chain_between(const Derivation *v, const Sizes *to, const Sizes *from)
{
    GraphBound *large = NULL, *small = NULL;
    double by = 0;
    if (!derivation_bind(v, to, &large, NULL) && !derivation_bind(v, from, &small, NULL))
        by = chain_growth(v, large, small);
    graph_bound_free(large);
    graph_bound_free(small);
    return by;
}

/* Smaller sizes whose longest sum is several times as short: 0, or -1 if there are none. */
static int shorter(const Derivation *v, const Sizes *at, Sizes *out)
{
    double terms = extent_of(v, at).terms, flops = DERIVE_DEEP_FLOPS;
    for (int k = 0; k < HALVINGS; k++) {
        flops /= 2;
        if (sizes_deep(v, at, flops, out, NULL)) return -1;
        double now = extent_of(v, out).terms;
        if (now < LEAST_TERMS) return -1;
        if (SHORTER * now <= terms) return 0;
    }
    return -1;
}

double growth_exponent(const Derivation *v, const Task *t, const Sizes *at)
{
    Sizes small;
    HonestError e[2];
    Error unused;
    double rtol[GRAPH_MAX_OUTPUTS] = {0}, worst = 0;
    const HonestPlan plan = {rtol, (HonestGrowth[]){{1, 1, 0}}, 1, 0, NULL, 0};
    if (shorter(v, at, &small)) return 1;
    for (int k = 0; k < 2; k++) {
        Workload w = {.role = ROLE_CHECK};
        memcpy(w.axis, k ? at->at : small.at, sizeof w.axis);
        const TaskCase c = {t, &w, VARIANT_DRAWN, 0, 1};
        if (honest_measure(&c, &plan, &e[k], &unused)) return 1;
    }
    double by = log(extent_of(v, at).terms / extent_of(v, &small).terms);
    for (int i = 0; i < t->n_outputs; i++) {
        if (!(e[0].mean[i] > 0 && e[1].mean[i] > 0)) return 1;
        worst = fmax(worst, log(e[1].mean[i] / e[0].mean[i]) / by);
    }
    return fmin(worst + EXPONENT_MARGIN, MOST_EXPONENT);
}

HonestGrowth growth_of(const Derivation *v, const Sizes *to, const Sizes *from, double exponent)
{
    Extent large = extent_of(v, to), small = extent_of(v, from);
    HonestGrowth g = growth(large, small, exponent);
    double extreme = fmax(1, deviations(large.elements) / deviations(small.elements));
    g.chain = extreme * chain_between(v, to, from);
    return g;
}
