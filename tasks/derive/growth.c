/* The extent of a graph at two sizes, and how errors grow from one to the other. */
#include "tasks/derive/growth.h"

#include <math.h>
#include <string.h>

typedef struct {
    double terms, elements;
} Extent;

/* The longest running sum; 1: there is none. */
static double longest_scan(const GraphBound *b)
{
    int64_t longest = 1;
    int dim;
    for (int node = 0; node < b->graph->n_nodes; node++) {
        const OpCall *c = &b->calls[node].call;
        const OpTensor *x = &c->tensor[0];
        if (strcmp(c->op->name, "aten.cumsum.default") != 0 || !x->rank) continue;
        if (op_dim(c->arg[1].integer[0], x->rank, &dim, NULL)) continue;
        if (x->size[dim] > longest) longest = x->size[dim];
    }
    return (double)longest;
}

/* The longest sum, and how many errors do not depend on each other: those along a running sum are one
 * random walk. */
static Extent extent_of(const Derivation *v, const Sizes *s)
{
    GraphBound *b;
    double n = 0;
    if (derivation_bind(v, s, &b, NULL)) return (Extent){1, 1};
    for (int i = 0; i < v->draft.n_outputs; i++)
        n += (double)op_elements(&b->values[v->graph->output[i]].tensor);
    Extent e = {(double)sizes_terms(b), n / longest_scan(b)};
    graph_bound_free(b);
    return e;
}

/* About how many standard deviations the largest of n normal errors is. */
static double deviations(double n)
{
    return sqrt(2 * log(2 + n));
}

/* An error grows at most as the number of terms does while one running sum may have them all, and else with
 * its root; and the largest of more errors is larger. */
static HonestGrowth growth(Extent to, Extent from)
{
    double max = HONEST_DRIFT_MAX, running = fmax(1, fmin(to.terms, max) / fmin(from.terms, max)),
           beyond = fmax(1, to.terms / fmax(from.terms, max));
    double extreme = deviations(to.elements) / deviations(from.elements);
    return (HonestGrowth){running * sqrt(beyond) * fmax(1, extreme), to.elements / from.elements};
}

HonestGrowth growth_of(const Derivation *v, const Sizes *to, const Sizes *from)
{
    return growth(extent_of(v, to), extent_of(v, from));
}
