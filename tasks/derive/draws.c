/* Draws follow from use. What a logarithm, a square root, a power or a division takes is positive; what an
 * operator takes as indices or classes is an integer within what it indexes; a parameter is as its
 * statistics say, and a constant one varies around its value, so that leaving it out shows. */
#include "tasks/derive/draws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tasks/derive/indices.h"

/* Operators with an argument that must be positive; which one, by its name in the schema. */
static const struct {
    const char *op, *argument;
} positive[] = {{"aten.log.", "self"},
                {"aten.log_.", "self"},
                {"aten.log2.", "self"},
                {"aten.log10.", "self"},
                {"aten.log1p.", "self"},
                {"aten.sqrt.", "self"},
                {"aten.sqrt_.", "self"},
                {"aten.rsqrt.", "self"},
                {"aten.reciprocal.", "self"},
                {"aten.div.", "other"},
                {"aten.div_.", "other"},
                {"aten.true_divide.", "other"},
                {"aten.pow.Tensor_Scalar", "self"},
                {"aten.pow.Tensor_Tensor", "self"},
                {"aten.batch_norm.", "running_var"},
                {"aten.instance_norm.", "running_var"},
                {"aten.native_batch_norm.", "running_var"},
                {"aten._native_batch_norm_legit_no_training.", "running_var"},
                {"aten.kl_div.", "target"}};

static int argument_value(const GraphCall *c, const char *name)
{
    int arg = op_argument(c->call.op, name);
    if (arg < 0 || c->call.arg[arg].kind != OP_TENSOR) return -1;
    return c->in[c->call.arg[arg].integer[0]];
}

/* A value and an input are the same numbers under other shapes. */
static int is_input(const GraphBound *b, int value, int input)
{
    return value >= 0 && b->values[value].base == input;
}

/* x^2 and x^3 take every sign; no other power does. */
static int whole_power(const GraphCall *c)
{
    int arg = op_argument(c->call.op, "exponent");
    if (arg < 0 || c->call.arg[arg].kind == OP_TENSOR) return 0;
    double e = c->call.arg[arg].number;
    return e >= 0 && e == floor(e);
}

static int must_be_positive(const GraphBound *b, int input)
{
    for (int node = 0; node < b->graph->n_nodes; node++) {
        const GraphCall *c = &b->calls[node];
        for (size_t i = 0; i < sizeof positive / sizeof *positive; i++) {
            size_t len = strlen(positive[i].op);
            if (strncmp(c->call.op->name, positive[i].op, len)) continue;
            if (!strncmp(positive[i].op, "aten.pow", 8) && whole_power(c)) continue;
            if (is_input(b, argument_value(c, positive[i].argument), input)) return 1;
        }
    }
    return 0;
}

typedef struct {
    const GraphBound *b;
    int input;
    int64_t range;
} Range;

static void narrow(void *ctx, int value, int64_t size)
{
    Range *r = ctx;
    if (is_input(r->b, value, r->input) && (!r->range || size < r->range)) r->range = size;
}

/* The size of what an input indexes in one bound graph; 0: it is no index. */
static int64_t index_range(const GraphBound *b, int input)
{
    Range r = {b, input, 0};
    indices_each(b, narrow, &r);
    return r.range;
}

static int64_t range_of(const Derivation *v, const GraphBound *b, const void *input)
{
    (void)v;
    return index_range(b, *(const int *)input);
}

/* The largest index as an expression, where the size of what is indexed varies; NULL: none is found. */
static const char *largest_index(Derivation *v, int input)
{
    char *size = derivation_expression(v, range_of, &input), *largest = NULL;
    int named = 0;
    for (int i = 0; size && i < v->draft.n_axes; i++)
        named |= derivation_mentions(size, v->axes[i].name);
    if (named) largest = memory_printf("%s - 1", size);
    free(size);
    return largest ? derivation_keep(v, largest) : NULL;
}

/* Sets x->high for the n sizes, too, for all of which it fits. */
static void draw_integer(Derivation *v, const Sizes *sizes, int n, int input, DraftTensor *x)
{
    x->draw = DRAW_INTEGER;
    x->low = x->dtype == DTYPE_B8 ? 0 : -8;
    x->high = x->dtype == DTYPE_B8 ? 1 : 8;
    for (int i = 0; i < n; i++) {
        GraphBound *b;
        if (derivation_bind(v, &sizes[i], &b, NULL)) continue;
        int64_t range = index_range(b, input), room;
        if (range) x->distinct = indices_distinct(b, input, &room) + 1;
        graph_bound_free(b);
        if (!range) continue;
        if (x->low < 0 || (double)(range - 1) < x->high) x->high = (double)(range - 1);
        x->low = 0;
    }
    if (x->low == 0 && x->dtype != DTYPE_B8) x->highest = largest_index(v, input);
}

/* The statistics of a module's parameter, which are those of a uniform, a normal or one value. One that
 * begins at zero or nearly, as the scale of a branch, is trained away from it. */
static void draw_statistics(DraftTensor *x)
{
    double half = (x->max - x->min) / 2;
    if (x->std <= 1e-6 * fabs(x->mean) || x->std == 0) {
        double c = x->mean;
        x->draw = fabs(c) < 1e-3 ? DRAW_NORMAL : c == 1 ? DRAW_POSITIVE : DRAW_UNIFORM;
        x->low = fmin(c / 2, c * 1.5), x->high = fmax(c / 2, c * 1.5);
        x->mean = 0, x->std = 0.25;
    } else if (fabs(half - x->std * sqrt(3)) < 0.1 * half) {
        x->draw = DRAW_UNIFORM;
        x->low = x->min, x->high = x->max;
    } else {
        x->draw = DRAW_NORMAL;
    }
}

int draws_choose(Derivation *v, const Sizes *sizes, int n, Error *err)
{
    GraphBound *b;
    Sizes own = derivation_own(v);
    if (derivation_bind(v, &own, &b, err)) return -1;
    for (int i = 0; i < v->draft.n_inputs; i++) {
        DraftTensor *x = &v->inputs[i];
        if (x->has_draw) {
            if (x->draw == DRAW_NORMAL && !x->has_statistics) x->mean = 0, x->std = 1;
            continue;
        }
        if (x->dtype >= DTYPE_I32) {
            draw_integer(v, sizes, n, i, x);
        } else if (must_be_positive(b, i)) {
            x->draw = DRAW_POSITIVE;
        } else if (x->has_statistics) {
            draw_statistics(x);
        } else {
            x->draw = DRAW_NORMAL;
            x->mean = 0;
            x->std = 1;
        }
        x->has_draw = 1;
    }
    graph_bound_free(b);
    return 0;
}
