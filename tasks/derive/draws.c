/* Draws follow from use. What a logarithm, a square root, a power or a division takes is positive; what an
 * operator takes as indices or classes is an integer within what it indexes, and what is compared with
 * positions is a length that leaves one or more; a parameter is as its statistics say, and a constant one
 * varies around its value, so that leaving it out shows. */
#include "tasks/derive/draws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/words.h"
#include "tasks/derive/indices.h"

#define LARGEST 1e6      /* of a number in task.json */
#define LEAST_SPREAD 1.5 /* standard deviations between a normal's mean and the ends of its range */

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

enum { EVERY_USE = -1, MOST_USES = 4 };

/* What the uses of an integer input leave, or one of them alone: from low to size + above, of several the
 * least. n: of how many uses. */
typedef struct {
    const GraphBound *b;
    int input, only, n;
    int64_t low, size, above;
} Range;

static void narrow(Range *r, int value, int64_t least, int64_t n)
{
    int64_t plus, low;
    if (!indices_of_input(r->b, value, r->input, &plus)) return;
    low = least - plus;
    int first = !r->n || r->n == r->only, counts = r->only < 0 || r->n == r->only;
    r->n++;
    if (!counts) return;
    if (first || low > r->low) r->low = low;
    if (first || n + low - 1 < r->size + r->above) r->size = n, r->above = low - 1;
}

static void narrow_index(void *ctx, int value, int64_t size)
{
    narrow(ctx, value, 0, size);
}

static void narrow_length(void *ctx, int value, int64_t least, int64_t n)
{
    narrow(ctx, value, least, n);
}

/* The integers that an input holds in one bound graph. What no index may be is left out in any case, what
 * lengths leave where that is any. n 0: it is neither. */
static Range range_of(const GraphBound *b, int input, int only)
{
    Range r = {b, input, only, 0}, both;
    indices_each(b, narrow_index, &r);
    both = r;
    lengths_each(b, narrow_length, &both);
    return both.n && both.low <= both.size + both.above ? both : r;
}

static int64_t range_size(const Derivation *v, const GraphBound *b, const void *own)
{
    const Range *r = own, now = range_of(b, r->input, r->only);
    (void)v;
    return now.size + now.above - r->above;
}

/* The axis that is r's size at all of the n sizes: one that is tied to others, which no expression finds.
 * NULL: none is. */
static char *tied_axis(const Derivation *v, const Range *r, const Sizes *sizes, int n)
{
    char varies = 0, holds[TASK_MAX_AXES];
    memset(holds, 1, sizeof holds);
    for (int i = 0; i < n; i++) {
        GraphBound *b;
        if (derivation_bind(v, &sizes[i], &b, NULL)) continue;
        int64_t size = range_size(v, b, r);
        graph_bound_free(b);
        varies |= size != r->size;
        for (int k = 0; k < v->draft.n_axes; k++) holds[k] &= sizes[i].at[k] == size;
    }
    for (int k = 0; k < v->draft.n_axes && varies; k++)
        if (holds[k]) return memory_strdup(v->axes[k].name);
    return NULL;
}

/* The largest integer of a use or of all as an expression of the memory's, where it varies; NULL: none is
 * found. n 0: no axis that is tied to others stands for it. */
static char *largest_of(Derivation *v, const Sizes *sizes, int n, const Range *own)
{
    char *size = derivation_expression(v, range_size, own, NULL, 0), *largest = NULL;
    int named = 0;
    for (int i = 0; size && i < v->draft.n_axes; i++) named |= word_in(size, v->axes[i].name);
    if (!named) {
        free(size);
        size = tied_axis(v, own, sizes, n);
    }
    if (size && own->above)
        largest = memory_printf("%s %c %lld", size, own->above < 0 ? '-' : '+',
                                (long long)llabs(own->above));
    else if (size)
        largest = memory_strdup(size);
    free(size);
    return largest;
}

/* The least of what several uses leave. */
static char *least_of_uses(Derivation *v, const Sizes *sizes, int n, const Range *all)
{
    char *least = NULL;
    for (int k = 0; k < all->n && all->n <= MOST_USES; k++) {
        Range own = range_of(all->b, all->input, k);
        char *largest = largest_of(v, sizes, n, &own), *before = least;
        if (!largest) {
            free(least);
            return NULL;
        }
        least = !before || !strcmp(before, largest) ? memory_strdup(largest)
                                                    : memory_printf("min(%s, %s)", before, largest);
        free(largest);
        free(before);
    }
    return least;
}

static const char *largest_integer(Derivation *v, const Sizes *sizes, int n, int input)
{
    GraphBound *b;
    Sizes module = derivation_own(v);
    if (derivation_bind(v, &module, &b, NULL)) return NULL;
    Range own = range_of(b, input, EVERY_USE);
    char *largest = largest_of(v, sizes, 0, &own);
    if (!largest && own.n > 1) largest = least_of_uses(v, sizes, n, &own);
    if (!largest) largest = largest_of(v, sizes, n, &own);
    graph_bound_free(b);
    return largest ? derivation_keep(v, largest) : NULL;
}

/* Sets x->high for the n sizes, too, for all of which it fits. What nothing bounds is within the range of
 * the module's example input. */
static void draw_integer(Derivation *v, const Sizes *sizes, int n, int input, DraftTensor *x)
{
    int known = 0;
    x->draw = DRAW_INTEGER;
    x->low = x->dtype == DTYPE_B8 ? 0 : -8;
    x->high = x->dtype == DTYPE_B8 ? 1 : 8;
    if (x->has_range && x->dtype != DTYPE_B8 && x->min >= INT32_MIN && x->max <= INT32_MAX) {
        x->low = x->min, x->high = x->max;
        if (x->low == x->high)
            x->low = fmin(x->low, 0), x->high = fmax(x->high, 1); /* a mask of ones */
    }
    for (int i = 0; i < n; i++) {
        GraphBound *b;
        if (derivation_bind(v, &sizes[i], &b, NULL)) continue;
        int64_t room;
        Range r = range_of(b, input, EVERY_USE);
        if (r.n) x->distinct = indices_distinct(b, input, &room) + 1;
        graph_bound_free(b);
        if (!r.n) continue;
        double high = (double)(r.size + r.above);
        if (!known || high < x->high) x->high = high;
        if (!known || (double)r.low > x->low) x->low = (double)r.low;
        known = 1;
    }
    if (known && x->dtype != DTYPE_B8) x->highest = largest_integer(v, sizes, n, input);
}

/* A normal of these statistics would often leave the range that they have: that of probabilities, say. */
static int leaves_range(const DraftTensor *x)
{
    return x->mean - LEAST_SPREAD * x->std < x->min || x->mean + LEAST_SPREAD * x->std > x->max;
}

/* Of a parameter that begins at zero or nearly, which is trained away from it, or whose memory nothing has
 * filled. */
static int has_no_statistics(const DraftTensor *x)
{
    return (fabs(x->mean) < 1e-4 && x->std < 1e-4) ||
           !(fabs(x->min) <= LARGEST && fabs(x->max) <= LARGEST);
}

/* The statistics of a module's parameter, which are those of a uniform, a normal or one value. */
static void draw_statistics(DraftTensor *x)
{
    double half = (x->max - x->min) / 2;
    if (has_no_statistics(x)) {
        x->draw = DRAW_NORMAL;
        x->mean = 0, x->std = 0.25;
    } else if (x->std <= 1e-6 * fabs(x->mean) || x->std == 0) {
        double c = x->mean;
        x->draw = fabs(c) < 1e-3 ? DRAW_NORMAL : c == 1 ? DRAW_POSITIVE : DRAW_UNIFORM;
        x->low = fmin(c / 2, c * 1.5), x->high = fmax(c / 2, c * 1.5);
        x->mean = 0, x->std = 0.25;
    } else if (fabs(half - x->std * sqrt(3)) < 0.1 * half || leaves_range(x)) {
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
        if (!dtype_is_float(x->dtype)) {
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
