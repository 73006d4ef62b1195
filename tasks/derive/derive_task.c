/* From a draft to the text of a task.json, step after step: sizes, draws, tolerances, what the gate
 * says of each check workload, and the text. */
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/words.h"
#include "tasks/derive/algebra.h"
#include "tasks/derive/derivation.h"
#include "tasks/derive/derive.h"
#include "tasks/derive/derive_gate.h"
#include "tasks/derive/exponential.h"
#include "tasks/derive/indices.h"
#include "tasks/derive/shapes.h"
#include "tasks/derive/sizes.h"
#include "tasks/derive/task_text.h"
#include "tasks/derive/tolerances.h"
#include "tasks/derive/trial.h"

/* ---- draws ---- */

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

/* Sets draw and its numbers of the inputs that have none. An index has the range that fits all of the
 * n sizes. */
static int draws_choose(Derivation *v, const Sizes *sizes, int n, Error *err)
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

/* ---- the first line whose result is not finite: a graph is run once and its results are watched ---- */

enum { SEED = 1 };

typedef struct {
    int first, nan; /* nodes; -1: none yet */
} Seen;

/* 1: some element is infinite or a NaN; 2: some is a NaN. */
static int broken(const double *x, int64_t n)
{
    int found = 0;
    for (int64_t k = 0; k < n && found < 2; k++)
        if (!isfinite(x[k])) found = isnan(x[k]) ? 2 : 1;
    return found;
}

/* A mask is filled with infinities on purpose. */
static int fills(const OpCall *c)
{
    static const char *const words[] = {"fill", "full", "where", "scalar_tensor"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(c->op->name, words[i])) return 1;
    return 0;
}

static int watch(void *ctx, const GraphStep *s, Error *err)
{
    Seen *seen = ctx;
    const OpCall *c = &s->b->calls[s->node].call;
    int before = fills(c), after = 0;
    (void)err;
    if (seen->first >= 0) return 0;
    for (int i = 0; i < c->n_results; i++) {
        int now = s->out[i] ? broken(s->out[i], op_elements(&c->result[i])) : 0;
        after = now > after ? now : after;
    }
    if (!after) return 0;
    for (int i = 0; i < c->n_tensors && !before; i++)
        before = broken(s->in[i], op_elements(&c->tensor[i]));
    if (!before) seen->first = s->node;
    if (after == 2 && seen->nan < 0) seen->nan = s->node;
    return 0;
}

/* The node, at some sizes and for the inputs as they are drawn now: the first whose arguments are finite and
 * whose result is not, numbers that it is asked to fill in left out; else the first that gives a NaN. -1:
 * none. */
static int broken_node(const Derivation *v, const Sizes *s)
{
    Seen seen = {-1, -1};
    const GraphHook hook = {.ctx = &seen, .results = watch};
    Trial t;
    if (trial_open(&t, v, s, SEED, NULL, NULL)) return -1;
    int rc = trial_run(&t, &hook, NULL);
    trial_close(&t);
    return rc ? -1 : seen.first >= 0 ? seen.first : seen.nan;
}

enum { PATH_BYTES = 4096, MORE_WORK = 16, WIDER = 8, ATTEMPTS = 3, CALMER = 8 };
/* How sizes and draws are chosen. Where small sizes say nothing, larger ones and wider draws may (a clamp
 * whose bounds are not reached), or sizes at which no reduction is of few elements (a norm of groups of one
 * channel). */
enum { PLAINLY, WIDELY, DEEPLY, WAYS };
static const double COSTLY_FLOPS = 1e8; /* of one execution: it runs on all cores */

/* ---- outputs ---- */

typedef struct {
    int output, dim;
} OutputDim;

static int64_t output_size(const Derivation *v, const GraphBound *b, const void *what)
{
    const OutputDim *o = what;
    return b->values[v->graph->output[o->output]].tensor.size[o->dim];
}

static int find_outputs(Derivation *v, Error *err)
{
    GraphBound *b;
    Sizes own = derivation_own(v);
    int rc = 0;
    if (derivation_bind(v, &own, &b, err)) return -1;
    for (int i = 0; i < v->draft.n_outputs && !rc; i++) {
        DraftTensor *y = &v->outputs[i];
        const OpTensor *have = &b->values[v->graph->output[i]].tensor;
        y->dtype = have->dtype;
        if (y->dtype >= DTYPES_OF_OUTPUTS)
            rc = error_set(err, ERROR_UNSUPPORTED, "output %s: %s is no type of an output", y->name,
                           dtype_name(have->dtype));
        if (rc || y->rank >= 0) continue;
        for (int d = 0; d < have->rank && !rc; d++) {
            char *text = derivation_expression(v, output_size, &(OutputDim){i, d}, NULL, 0);
            if (text)
                y->shape[d] = derivation_keep(v, text);
            else
                rc = error_set(err, ERROR_UNSUPPORTED,
                               "output %s: no expression was found for dimension %d", y->name, d);
        }
        if (!rc) y->rank = have->rank;
    }
    graph_bound_free(b);
    return rc;
}

/* ---- sizes ---- */

static const Sizes *timed_sizes(const Description *d)
{
    int i = 0;
    while (i < d->n - 1 && d->at[i].role != ROLE_TIME) i++;
    return &d->at[i].sizes;
}

/* The sizes of a simulator. DEEPLY: the largest of half, a quarter ... that are affordable when widened. */
static int choose_sim(const Derivation *v, const Sizes *time, int way, Sizes *sim, Error *err)
{
    double work = DERIVE_SIM_WORK;
    do {
        if (sizes_small(v, time, work, sim, err)) return -1;
        if (way != DEEPLY) return 0;
        sizes_widen_all(v, time, INFINITY, sim, 1);
        work /= 2;
    } while (work > DERIVE_SIM_WORK / 64 && sizes_affordable(v, sim, DERIVE_SIM_WORK / 2, NULL));
    return 0;
}

static int shape_too_large(int i, double bytes, Error *err)
{
    return error_set(
        err, ERROR_LIMIT,
        "shape %d: the tensors take %.1f GiB, at most %.2f are given but for the largest", i + 1,
        bytes / (1 << 30), DERIVE_TIME_BYTES / (1 << 30));
}

/* The draft's shapes, the largest first, which alone may have larger tensors than are given. */
static int choose_shapes(const Derivation *v, DescribedWorkload timed[TASK_MAX_TIMED], Error *err)
{
    int n = v->draft.n_shapes, largest = 0;
    double bytes[TASK_MAX_TIMED] = {0};
    for (int i = 0; i < n; i++) {
        timed[i] = (DescribedWorkload){.weight = v->draft.shapes[i].weight};
        if (shapes_sizes(v, i, &timed[i].own, err)) return -1;
        timed[i].sizes = timed[i].own;
        bytes[i] = sizes_bytes_at(v, &timed[i].own);
        if (bytes[i] > bytes[largest]) largest = i;
    }
    for (int i = 0; i < n; i++)
        if (i != largest && bytes[i] > DERIVE_TIME_BYTES) return shape_too_large(i, bytes[i], err);
    DescribedWorkload first = timed[largest];
    memmove(timed + 1, timed, (size_t)largest * sizeof *timed);
    timed[0] = first;
    return n;
}

/* The timed sizes, the largest first: the draft's shapes, or the module's own. Returns how many, or -1. */
static int choose_timed(const Derivation *v, DescribedWorkload timed[TASK_MAX_TIMED], Error *err)
{
    int n = 1;
    timed[0] = (DescribedWorkload){.weight = 1, .own = derivation_own(v)};
    if (v->draft.n_shapes && (n = choose_shapes(v, timed, err)) < 0) return -1;
    return sizes_time(v, &timed[0].own, DERIVE_TIME_BYTES, &timed[0].sizes, err) ? -1 : n;
}

static int choose_small(const Derivation *v, Description *d, const DescribedWorkload *timed, int n,
                        int way, Error *err)
{
    Sizes sim;
    for (int i = 0; i < n; i++) {
        description_add(d, ROLE_TIME, &timed[i].sizes);
        d->at[d->n - 1].weight = timed[i].weight;
        d->at[d->n - 1].own = timed[i].own;
    }
    for (int i = 0; i < n; i++) {
        if (choose_sim(v, &timed[i].sizes, way, &sim, err)) return -1;
        description_add(d, ROLE_SIM, &sim);
    }
    return 0;
}

/* Axes that may be 1 have at least so much. */
static void limit_ones(Derivation *v, int64_t low)
{
    for (int i = 0; i < v->draft.n_axes; i++)
        if (v->axes[i].one) v->axes[i].low = low;
}

/* Does the graph give finite results at these sizes? */
static int runs_at(const Derivation *v, const Sizes *s)
{
    Trial t;
    if (trial_open(&t, v, s, 1, NULL, NULL)) return 0;
    int holds = !trial_run(&t, NULL, NULL);
    for (int i = 0; i < t.n_outputs && holds; i++) {
        int64_t n = op_elements(&t.b->values[v->graph->output[i]].tensor);
        for (int64_t k = 0; k < n && holds; k++) holds = isfinite(t.out[i][k]);
    }
    trial_close(&t);
    return holds;
}

/* A first check workload as the smallest one, with ones where they are allowed. */
static void add_ones(Derivation *v, Description *d)
{
    Sizes ones = d->at[0].sizes;
    int any = 0;
    for (int i = 0; i < v->draft.n_axes; i++)
        if (v->axes[i].one) ones.at[i] = any = 1;
    if (!any || d->n == TASK_MAX_WORKLOADS) return;
    limit_ones(v, 1);
    if (!runs_at(v, &ones)) {
        limit_ones(v, 2);
        return;
    }
    description_add(d, ROLE_CHECK, &ones);
    DescribedWorkload first = d->at[d->n - 1];
    memmove(d->at + 1, d->at, (size_t)(d->n - 1) * sizeof *d->at);
    d->at[0] = first;
}

static int choose_sizes(Derivation *v, Description *d, int way, Sizes *deep, Error *err)
{
    Sizes checks[SIZES_CHECKS], all[SIZES_CHECKS + 2 * TASK_MAX_TIMED + 1];
    DescribedWorkload timed[TASK_MAX_TIMED];
    const Sizes *time = &timed[0].sizes;
    double work = (way == WIDELY ? MORE_WORK : 1) * DERIVE_CHECK_WORK;
    int n = sizes_checks(v, work, way == WIDELY ? WIDER : 1, checks), n_timed;
    if (!n) return error_set(err, ERROR_LIMIT, "no sizes of a check workload were found");
    if (sizes_affordable(v, &checks[0], DERIVE_MAX_FLOPS, err) ||
        (n_timed = choose_timed(v, timed, err)) < 0)
        return -1;
    if (way == DEEPLY) n = sizes_widen_all(v, time, MORE_WORK * DERIVE_CHECK_WORK / 2, checks, n);
    for (int i = 0; i < n; i++) description_add(d, ROLE_CHECK, &checks[i]);
    omp_set_num_threads(sizes_affordable(v, &checks[n - 1], COSTLY_FLOPS, NULL)
                            ? omp_get_num_procs()
                            : 1); /* most executions are short, and threads would wait */
    if (choose_small(v, d, timed, n_timed, way, err) ||
        sizes_deep(v, time, DERIVE_DEEP_FLOPS, deep, err))
        return -1;
    exponential_deepen(v, time, deep);
    for (int i = 0; i < d->n; i++) all[i] = d->at[i].sizes;
    all[d->n] = *deep;
    if (draws_choose(v, all, d->n + 1, err) || exponential_calm(v, time, err)) return -1;
    add_ones(v, d);
    return 0;
}

/* ---- finite results ---- */

static int is_finite(const Description *d)
{
    for (int i = 0; i < d->n; i++)
        if (!d->at[i].finite) return 0;
    return 1;
}

/* Special values that give infinities are no test of a kernel, nor are results that no float can hold:
 * inputs stay clear of zero then, or near one. */
static void tame_inputs(Derivation *v, int attempt)
{
    for (int i = 0; i < v->draft.n_inputs; i++) {
        DraftTensor *x = &v->inputs[i];
        if (!dtype_is_float(x->dtype) || x->parameter) continue;
        x->draw = attempt ? DRAW_UNIFORM : DRAW_POSITIVE;
        if (attempt) x->low = 0.9, x->high = 1.1, x->fixed = 1;
    }
}

/* An exponential of sums of parameters makes some elements 10^20 times as large as others: no tolerance
 * holds for both. Normal parameters are drawn CALMER times as small then. Returns whether there are any. */
static int calm_parameters(Derivation *v)
{
    int any = 0;
    for (int i = 0; i < v->draft.n_inputs; i++) {
        DraftTensor *x = &v->inputs[i];
        if (!dtype_is_float(x->dtype) || !x->parameter || x->draw != DRAW_NORMAL) continue;
        x->mean /= CALMER, x->std /= CALMER;
        any = 1;
    }
    return any;
}

/* Integers by which something is divided or of which a logarithm is taken are counts, from one on. Returns
 * whether there are any below. */
static int raise_integers(Derivation *v)
{
    int any = 0;
    for (int i = 0; i < v->draft.n_inputs; i++) {
        DraftTensor *x = &v->inputs[i];
        if (x->draw != DRAW_INTEGER || x->dtype == DTYPE_B8 || x->low > 0 || x->high < 1) continue;
        x->low = 1;
        any = 1;
    }
    return any;
}

/* The line that gives the first result which is not finite, as the inputs are drawn now; -1: none does. */
static int first_broken(const Derivation *v, const Description *d)
{
    for (int i = 0; i < d->n; i++)
        if (d->at[i].role == ROLE_CHECK && !d->at[i].finite) return broken_node(v, &d->at[i].sizes);
    return -1;
}

static int refuse_broken(const Derivation *v, int node, Error *err)
{
    static const char why[] = "the outputs are not finite for the inputs drawn";
    if (node < 0) return error_set(err, ERROR_UNSUPPORTED, "%s", why);
    return error_set(err, ERROR_UNSUPPORTED,
                     "graph[%d]: %s gives the first result that is not finite: %s", node,
                     v->graph->line[node].op->name, why);
}

/* As tolerances_measure, with other inputs where results are not finite. */
static int calibrate_finite(Derivation *v, Description *d, const Sizes *deep, int way, Error *err)
{
    int broken = -1;
    for (int attempt = 0, calm = 0; attempt < ATTEMPTS;) {
        int hopeless = tolerances_measure(v, d, deep, way != PLAINLY, err);
        if (hopeless < 0) return -1;
        if (!calm && is_finite(d) && d->blunt && calm_parameters(v)) {
            calm = 1;
        } else {
            if (hopeless || is_finite(d)) return hopeless;
            if (broken < 0) broken = first_broken(v, d);
            if (!raise_integers(v)) tame_inputs(v, attempt++);
        }
        description_forget(d);
    }
    return refuse_broken(v, broken, err);
}

/* ---- attempts ---- */

/* What the description tells, or -1. */
static int describe(Derivation *v, Description *d, int way, Error *err)
{
    Sizes deep, wide;
    for (int i = 0; i < v->draft.n_inputs && way == WIDELY; i++)
        if (v->inputs[i].draw == DRAW_NORMAL && !v->inputs[i].parameter)
            v->inputs[i].draw = DRAW_MIXED;
    limit_ones(v, 2);
    if (choose_sizes(v, d, way, &deep, err) || algebra_extremes(v, d, err)) return -1;
    int hopeless = calibrate_finite(v, d, &deep, way, err);
    if (hopeless) return hopeless < 0 ? -1 : TELLS_NOTHING;
    wide = deep;
    sizes_widen_all(v, timed_sizes(d), DERIVE_WIDE_FLOPS, &wide, 1);
    return gate_described_sizes(v, d, &wide, way == DEEPLY, err);
}

/* The best of the ways, the first of those that are as good. Only the first may fail. */
static int derive(Derivation *v, Description *d, Error *err)
{
    size_t bytes = (size_t)v->draft.n_inputs * sizeof *v->inputs;
    DraftTensor *own = memory_grow(NULL, bytes, 1), *best = memory_grow(NULL, bytes, 1);
    shapes_allow_one(v);
    int told = find_outputs(v, err) ? -1 : describe(v, d, PLAINLY, err), tells;
    memcpy(own, v->inputs, bytes);
    memcpy(best, v->inputs, bytes);
    for (int way = WIDELY; way < WAYS && told >= 0; way++) {
        Description now = {0};
        if (told == TELLS_ALL || (told && way == DEEPLY)) break;
        memcpy(v->inputs, own, bytes);
        if ((tells = describe(v, &now, way, NULL)) > told) {
            description_release(d);
            *d = now, told = tells;
            memcpy(best, v->inputs, bytes);
        } else {
            description_release(&now);
        }
    }
    memcpy(v->inputs, best, bytes);
    free(own);
    free(best);
    return told < 0 || algebra_degenerate(v, d, err) ? -1 : 0;
}

void derive_prepare(char *const argv[])
{
    process_again_with("OMP_WAIT_POLICY", "passive", argv);
    memory_keep();
}

int derive_task(const Draft *draft, char **text, Error *err)
{
    Derivation v;
    Description d = {0};
    int threads = omp_get_max_threads();
    if (derivation_open(&v, draft, err))
        return error_prefix(err, "%.64s", draft->name ? draft->name : "");
    int rc = derive(&v, &d, err);
    omp_set_num_threads(threads);
    if (!rc) *text = description_text(&v, &d);
    description_release(&d);
    if (rc) error_prefix(err, "%s", v.draft.name);
    derivation_release(&v);
    return rc ? -1 : 0;
}

int derive_write(const Draft *d, const char *folder, Error *err)
{
    char *text, dir[PATH_BYTES], file[PATH_BYTES + 16];
    if (derive_task(d, &text, err)) return -1;
    snprintf(dir, sizeof dir, "%s/%s", folder, d->name);
    snprintf(file, sizeof file, "%s/task.json", dir);
    int rc = file_mkdirs(dir, err) || file_write_atomic(file, text, strlen(text), err) ? -1 : 0;
    free(text);
    return rc;
}
