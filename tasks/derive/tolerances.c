/* Cases are measured side by side; what some need counts for others. */
#include "tasks/derive/tolerances.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tasks/derive/derive_gate.h"
#include "tasks/derive/exponential.h"
#include "tasks/derive/honest.h"
#include "tasks/derive/sizes.h"

/* ---- how errors that are measured at some sizes grow to larger ones ---- */

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

/* of the longest sum */
static int64_t growth_terms(const Derivation *v, const Sizes *at)
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

/* By the honest variants at some sizes and at smaller ones with shorter sums: 0 to 1.5; 1: it is not known.
 * t: the task of v. */
static double growth_exponent(const Derivation *v, const Task *t, const Sizes *at)
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

/* exponent: of the number of terms, with which errors grow along one running sum (growth_exponent). */
static HonestGrowth growth_of(const Derivation *v, const Sizes *to, const Sizes *from,
                              double exponent)
{
    Extent large = extent_of(v, to), small = extent_of(v, from);
    HonestGrowth g = growth(large, small, exponent);
    double extreme = fmax(1, deviations(large.elements) / deviations(small.elements));
    g.chain = extreme * chain_between(v, to, from);
    return g;
}

static const double MAX_RTOL = 1e-3, MAX_RTOL_HALF = 0.05;
/* Flops of least_whole. */
static const double LEAST_WHOLE = 4e6, MORE_WHOLE = 8, MOST_WHOLE = 2.56e8;

static double up(double x)
{
    if (!(x >= 0x1p-126)) return 0;
    double step = pow(10, floor(log10(x)) - 1);
    return ceil(x / step) * step;
}

static double least_rtol(Dtype d)
{
    return d == DTYPE_F32 ? 0x1p-22 : d == DTYPE_F16 ? 0x1p-10 : d == DTYPE_BF16 ? 0x1p-7 : 0;
}

/* The error of a running product is relative, and grows with the root of its length. Products of many
 * factors that are large are too rare for a sample. */
static double product_rtol(const Derivation *v, const Sizes *s)
{
    GraphBound *b;
    int64_t longest = 1;
    if (derivation_bind(v, s, &b, NULL)) return 0;
    for (int node = 0; node < b->graph->n_nodes; node++) {
        const OpCall *c = &b->calls[node].call;
        if (strncmp(c->op->name, "aten.cumprod", 12) != 0) continue;
        for (int k = 0; k < c->tensor[0].rank; k++)
            if (c->tensor[0].size[k] > longest) longest = c->tensor[0].size[k];
    }
    graph_bound_free(b);
    return longest > 1 ? HONEST_MARGIN * 0x1p-24 * sqrt((double)longest) : 0;
}

static const Workload *last_check(const Task *t)
{
    const Workload *last = NULL;
    for (int i = 0; i < t->n_workloads; i++)
        if (t->workloads[i].role == ROLE_CHECK) last = &t->workloads[i];
    return last;
}

/* rtol is what the middle elements of all outputs need at the largest check workload; elements that
 * need more, there or where sums are longer, have it from atol. d->blunt: the middle ones need more than
 * MOST_RTOL, so that results with half of the digits would pass. */
static int measure_rtol(const Task *t, Description *d, HonestKept **kept, Error *err)
{
    HonestError e;
    if (honest_keep(t, last_check(t), kept, &e, err)) return -1;
    for (int i = 0; i < t->n_outputs; i++) {
        Dtype type = t->outputs[i].dtype;
        int margin = type == DTYPE_F32 ? HONEST_MARGIN : HONEST_MARGIN_HALF;
        double largest = type == DTYPE_F32 ? MAX_RTOL : MAX_RTOL_HALF;
        double need = fmax(least_rtol(type), margin * e.rtol[i]);
        d->rtol[type] = fmax(d->rtol[type], fmin(largest, up(need)));
        d->blunt |= need > largest;
    }
    return 0;
}

/* One case of one or two workloads that are measured at the same sizes, on a thread of its own. grown:
 * as HonestPlan has it. */
typedef struct {
    Workload w;
    HonestGrowth grown[2];
    DescribedWorkload *to[2];
    int n, which, rc, known; /* known: found is filled already */
    HonestError found[2];
    Error err;
} Measurement;

static const double case_scales[ATOL_CASES] = {1, 8, 0.125, 1, 1};
static const Variant case_variants[ATOL_CASES] = {VARIANT_DRAWN, VARIANT_DRAWN, VARIANT_DRAWN,
                                                  VARIANT_NEEDLES, VARIANT_SPECIAL};

/* Those of a task. */
typedef struct {
    const Task *t;
    const HonestKept *kept; /* the executions for rtol */
    double rtol[GRAPH_MAX_OUTPUTS];
    Measurement *list;
    int n;
    const Sizes *deep; /* where the timed workload is measured */
} Measurements;

/* Adds the cases of a workload that is measured at w's sizes. */
static void add_cases(Measurements *all, const Workload *w, HonestGrowth grown,
                      DescribedWorkload *to)
{
    const Task *t = all->t;
    Measurement *list = all->list;
    int before = all->n;
    if (!to->atol) {
        to->finite = 1;
        to->atol = memory_array((size_t)t->n_outputs * ATOL_CASES, sizeof(double));
    }
    for (int k = 0; k < ATOL_CASES; k++) {
        if (!task_has_variant(t, w, case_variants[k])) continue;
        Measurement *m = NULL;
        for (int i = 0; i < before && !m; i++)
            if (list[i].which == k && list[i].n == 1 &&
                !memcmp(list[i].w.axis, w->axis, sizeof w->axis))
                m = &list[i];
        if (!m) {
            m = &list[all->n++];
            *m = (Measurement){.w = *w, .which = k};
        }
        m->grown[m->n] = grown;
        m->to[m->n++] = to;
    }
}

/* Only the largest check workload is judged with needles and special contents. The others, with sums that
 * may underflow, add to what is known of the errors. */
static int is_judged(const Task *t, const Measurement *m)
{
    return m->w.role != ROLE_CHECK || case_variants[m->which] == VARIANT_DRAWN ||
           !memcmp(m->w.axis, task_largest_check(t)->axis, sizeof m->w.axis);
}

static void take_case(const Task *t, const Measurement *m)
{
    for (int k = 0; k < m->n; k++) {
        m->to[k]->finite &= m->found[k].finite && !(m->found[k].overflow && is_judged(t, m));
        for (int i = 0; i < t->n_outputs; i++) {
            int single = t->outputs[i].dtype == DTYPE_F32;
            double least = single && m->which == AT_SPECIAL ? 0x1p-126 : 0;
            double *at = &m->to[k]->atol[i * ATOL_CASES + m->which];
            *at = fmax(*at, up(fmax(m->found[k].atol[i], least)));
        }
    }
}

/* As many threads as there are, as long as their tensors fit DERIVE_MEMORY. */
static int case_threads(const Task *t, const Measurement *list, int n)
{
    double largest = 1, threads = fmin(omp_get_num_procs(), n);
    for (int k = 0; k < n; k++) {
        double elements = 0;
        size_t one;
        for (int i = 0; i < t->n_inputs; i++)
            if (!task_elements(t, &list[k].w, &t->inputs[i], &one, NULL)) elements += (double)one;
        largest = fmax(largest, elements);
    }
    threads = fmin(threads, DERIVE_MEMORY / (largest * 3 * sizeof(double)));
    return threads < 1 ? 1 : (int)threads;
}

static HonestPlan plan_of(const Measurements *all, const Measurement *m)
{
    return (HonestPlan){all->rtol, m->grown, m->n, m->which == AT_SCALE_1, all->kept, 0};
}

/* Those that were executed for rtol. */
static void replay(Measurements *all)
{
    const Workload *last = last_check(all->t);
    for (int k = 0; k < all->n; k++) {
        Measurement *m = &all->list[k];
        const HonestPlan plan = plan_of(all, m);
        if (m->which != AT_SCALE_1 || memcmp(m->w.axis, last->axis, sizeof m->w.axis)) continue;
        honest_replay(all->kept, &plan, m->found);
        m->known = 1;
    }
}

/* Cases do not depend on each other: on any number of threads the results are the same. */
static int measure_cases(Measurements *all, Error *err)
{
    const Task *t = all->t;
    Measurement *list = all->list;
    int n = all->n, threads = case_threads(t, list, n), rc = 0;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int k = n - 1; k >= 0; k--) { /* the costly ones first */
        Measurement *m = &list[k];
        if (m->known) continue;
        const HonestPlan plan = plan_of(all, m);
        const TaskCase of = {t, &m->w, case_variants[m->which], 0, case_scales[m->which]};
        m->rc = honest_measure(&of, &plan, m->found, &m->err);
    }
    for (int k = 0; k < n && !rc; k++) {
        rc = list[k].rc;
        if (rc)
            *err = list[k].err;
        else
            take_case(t, &list[k]);
    }
    return rc;
}

/* The largest errors of few elements vary with the draw: each check workload has the tolerance of all. */
static void pool_checks(Description *d, int n)
{
    for (int k = 0; k < n; k++) {
        double largest = 0;
        for (int i = 0; i < d->n; i++)
            if (d->at[i].role == ROLE_CHECK) largest = fmax(largest, d->at[i].atol[k]);
        for (int i = 0; i < d->n; i++) d->at[i].atol[k] = fmax(d->at[i].atol[k], largest);
    }
}

/* A clamp may hide the errors of all elements of a sample, and still pass one in thousands of the timed
 * sizes. Where a case needs no tolerance at all, it has the one for inputs eight times as large, which pass,
 * divided by the ratio of the scales: errors grow at least as fast as the inputs. When all units are off,
 * these inputs need no tolerance either: the case then takes the least tolerance of the other cases. */
static void floor_hidden(DescribedWorkload *w, int n_outputs)
{
    for (int i = 0; i < n_outputs; i++) {
        double *at = w->atol + (size_t)i * ATOL_CASES, wide = at[AT_SCALE_8] / 8, least = INFINITY;
        for (int k = 0; k < AT_SPECIAL; k++)
            if (at[k] == 0) at[k] = up(k == AT_SCALE_EIGHTH ? wide / 8 : wide);
        for (int k = 0; k < AT_SPECIAL; k++)
            if (at[k] > 0) least = fmin(least, at[k]);
        for (int k = 0; k < AT_SPECIAL; k++)
            if (at[k] == 0 && isfinite(least)) at[k] = least;
    }
}

/* Inputs eight times as large may saturate nearly all elements. One that is not has the errors of smaller
 * inputs, and another draw may have it. */
static void floor_saturated(DescribedWorkload *w, int n_outputs)
{
    for (int i = 0; i < n_outputs; i++) {
        double *at = w->atol + (size_t)i * ATOL_CASES;
        at[AT_SCALE_8] = fmax(at[AT_SCALE_8], at[AT_SCALE_1]);
    }
}

/* Special contents are mostly exact: one draw may show no error where another one cancels. They are
 * allowed what the contents with the least errors need. */
static void floor_special(DescribedWorkload *w, int n_outputs)
{
    for (int i = 0; i < n_outputs; i++) {
        double *at = w->atol + (size_t)i * ATOL_CASES, least = at[0];
        for (int k = 1; k < AT_SPECIAL; k++) least = fmin(least, at[k]);
        at[AT_SPECIAL] = fmax(at[AT_SPECIAL], least);
    }
}

/* The workload before `to` that has the same sizes, and so the same errors; NULL: there is none. */
static const DescribedWorkload *same_sizes(const Description *d, const DescribedWorkload *to)
{
    for (const DescribedWorkload *w = d->at; w < to && to->role != ROLE_TIME; w++)
        if (w->role != ROLE_TIME && !memcmp(&w->sizes, &to->sizes, sizeof w->sizes)) return w;
    return NULL;
}

static void copy_cases(const Task *t, Description *d)
{
    size_t n = (size_t)t->n_outputs * ATOL_CASES;
    for (int i = 0; i < d->n; i++) {
        DescribedWorkload *to = &d->at[i];
        const DescribedWorkload *from = same_sizes(d, to);
        if (!from) continue;
        to->atol = memory_array(n, sizeof *to->atol);
        memcpy(to->atol, from->atol, n * sizeof *to->atol);
        to->finite = from->finite;
    }
}

/* The timed workload is measured at `deep`, where one sum is as long or nearly, and also where no other
 * reduction is trivial: only there do the sums before and behind it say what their errors grow to. */
static void add_timed(Measurements *all, const Derivation *v, DescribedWorkload *to,
                      const Sizes *deep)
{
    Workload w = {.role = ROLE_TIME};
    Sizes wide = *deep;
    double exponent = growth_exponent(v, all->t, deep);
    sizes_widen(v, &to->sizes, DERIVE_WIDE_FLOPS, &wide);
    for (int k = 0; k < 2; k++) {
        const Sizes *at = k ? &wide : deep;
        int is_wide = !memcmp(&wide, at, sizeof wide);
        if (k && !memcmp(&wide, deep, sizeof wide)) break;
        memcpy(w.axis, at->at, sizeof w.axis);
        HonestGrowth g = growth_of(v, &to->sizes, at, exponent);
        if (!is_wide) g.chain = 0;
        add_cases(all, &w, g, to);
    }
}

/* What one case needs at sizes with whole sums, without growth. Few outputs may have small errors by
 * chance. */
static int need_whole(const Measurements *all, const Derivation *v, const DescribedWorkload *to,
                      Measurement *m, double need[GRAPH_MAX_OUTPUTS], Error *err)
{
    Sizes whole;
    HonestError e;
    memcpy(whole.at, m->w.axis, sizeof whole.at);
    HonestGrowth g = growth_of(v, &to->sizes, &whole, 1);
    const HonestPlan plan = {all->rtol, &g, 1, 0, NULL, 1};
    const TaskCase of = {all->t, &m->w, case_variants[m->which], 0, case_scales[m->which]};
    if (honest_measure(&of, &plan, &e, err)) return -1;
    double walk = honest_walk(growth_terms(v, &whole));
    for (int i = 0; i < all->t->n_outputs; i++)
        need[i] = e.finite && !e.overflow ? up(fmax(e.atol[i], e.few[i] * walk)) : 0;
    return 0;
}

/* The smallest sizes with whole sums, as far as they are affordable. */
static int least_whole(const Derivation *v, const Sizes *timed, Sizes *out)
{
    for (double flops = LEAST_WHOLE; flops <= MOST_WHOLE; flops *= MORE_WHOLE)
        if (!sizes_whole_sums(v, timed, flops, out)) return 0;
    return -1;
}

/* Where fewer rows of the timed workload, with sums as long as there, are affordable, contents as drawn need
 * what these do: shorter sums may give terms of another size to those behind them. The others may need what
 * shorter sums do not show: a maximum of more terms, elements that are rare. */
static int measure_whole(const Measurements *all, const Derivation *v, DescribedWorkload *to,
                         Error *err)
{
    Sizes whole, least;
    double need[GRAPH_MAX_OUTPUTS];
    if (sizes_reduce_alike(v, all->deep, &to->sizes) ||
        sizes_whole_sums(v, &to->sizes, DERIVE_WHOLE_FLOPS, &whole))
        return 0;
    int others = !least_whole(v, &to->sizes, &least);
    for (int k = 0; k < ATOL_CASES; k++) {
        Measurement m = {.w = {.role = ROLE_TIME}, .which = k};
        memcpy(m.w.axis, k == AT_SCALE_1 ? whole.at : least.at, sizeof m.w.axis);
        if (k != AT_SCALE_1 && !(others && task_has_variant(all->t, &m.w, case_variants[k])))
            continue;
        if (need_whole(all, v, to, &m, need, err)) return -1;
        for (int i = 0; i < all->t->n_outputs; i++) {
            double *at = &to->atol[(size_t)i * ATOL_CASES + k];
            if (need[i] > 0) *at = k == AT_SCALE_1 ? need[i] : fmax(*at, need[i]);
        }
    }
    return 0;
}

/* What is measured at some sizes counts at others. */
static void pool(const Task *t, Description *d)
{
    copy_cases(t, d);
    pool_checks(d, t->n_outputs * ATOL_CASES);
    for (int i = 0; i < d->n; i++) floor_hidden(&d->at[i], t->n_outputs);
    for (int i = 0; i < d->n; i++) {
        floor_saturated(&d->at[i], t->n_outputs);
        floor_special(&d->at[i], t->n_outputs);
    }
}

/* The timed workload has no less than what is measured at its own sizes: coordinates of a resized image err
 * with the image's size, which no sum shows. */
static void floor_measured(const Task *t, Description *d)
{
    for (int i = 0; i < d->n; i++)
        for (int j = 0; j < d->n && d->at[i].role == ROLE_TIME; j++) {
            const DescribedWorkload *w = &d->at[j];
            if (w->role == ROLE_TIME || memcmp(&w->sizes, &d->at[i].sizes, sizeof w->sizes))
                continue;
            for (int k = 0; k < t->n_outputs * ATOL_CASES; k++)
                d->at[i].atol[k] = fmax(d->at[i].atol[k], w->atol[k]);
        }
}

/* The timed workloads behind the first, each where its own sums are long. */
static int add_other_timed(Measurements *all, const Derivation *v, DescribedWorkload *to,
                           Error *err)
{
    Sizes deep;
    if (sizes_deep(v, &to->sizes, DERIVE_DEEP_FLOPS, &deep, err)) return -1;
    exponential_deepen(v, &to->sizes, &deep);
    add_timed(all, v, to, &deep);
    return 0;
}

/* The cases of all workloads. */
static int list_cases(Measurements *all, const Derivation *v, Description *d, const Sizes *deep,
                      Error *err)
{
    int timed = 0, rc = 0;
    all->deep = deep;
    for (int i = 0; i < d->n; i++)
        if (d->at[i].role != ROLE_TIME && !same_sizes(d, &d->at[i]))
            add_cases(all, &all->t->workloads[i], (HonestGrowth){1, 1}, &d->at[i]);
    for (int i = 0; i < d->n && !rc; i++) {
        if (d->at[i].role != ROLE_TIME) continue;
        if (timed++)
            rc = add_other_timed(all, v, &d->at[i], err);
        else
            add_timed(all, v, &d->at[i], deep);
    }
    return rc;
}

/* 1: the description is hopeless, which is found first, and saves the measurements. */
static int measure(const Derivation *v, Description *d, Measurements *all, int doubted, Error *err)
{
    if (doubted && gate_hopeless(v, d, all->kept, all->rtol)) return 1;
    replay(all);
    if (measure_cases(all, err)) return -1;
    pool(all->t, d);
    for (int i = 0; i < d->n; i++)
        if (d->at[i].role == ROLE_TIME && measure_whole(all, v, &d->at[i], err)) return -1;
    floor_measured(all->t, d);
    return 0;
}

int tolerances_measure(const Derivation *v, Description *d, const Sizes *deep, int doubted,
                       Error *err)
{
    char *text = description_text(v, d);
    Task *t = NULL;
    int rc = task_parse(v->draft.name, text, &t, err);
    free(text);
    if (rc) return error_prefix(err, "the task that was derived");
    HonestKept *kept = NULL;
    Measurements all = {.t = t};
    all.list = memory_array((size_t)(2 * d->n + 1) * ATOL_CASES, sizeof *all.list);
    rc = measure_rtol(t, d, &kept, err);
    if (!rc) {
        all.kept = kept;
        for (int i = 0; i < d->n; i++)
            if (d->at[i].role == ROLE_TIME)
                d->rtol[DTYPE_F32] = fmax(d->rtol[DTYPE_F32], up(product_rtol(v, &d->at[i].sizes)));
        for (int i = 0; i < t->n_outputs; i++) all.rtol[i] = d->rtol[t->outputs[i].dtype];
        rc = list_cases(&all, v, d, deep, err);
        if (!rc) rc = measure(v, d, &all, doubted, err);
    }
    honest_kept_free(kept);
    free(all.list);
    task_free(t);
    return rc;
}

/* As pool_checks, by the checks of a task that is there. */
static void raise_by_checks(const Task *t, DescribedWorkload *to)
{
    for (int i = 0; i < t->n_workloads; i++) {
        const Workload *w = &t->workloads[i];
        for (int k = 0; k < t->n_outputs * ATOL_CASES && w->atol && w->role == ROLE_CHECK; k++)
            to->atol[k] = fmax(to->atol[k], w->atol[k]);
    }
}

int tolerances_measure_timed(const Derivation *v, const Task *t, Description *d, Error *err)
{
    Sizes deep;
    Measurements all = {.t = t, .deep = &deep};
    all.list = memory_array((size_t)(d->n + 1) * ATOL_CASES * 2, sizeof *all.list);
    for (int i = 0; i < t->n_outputs; i++) all.rtol[i] = t->rtol[t->outputs[i].dtype];
    int rc = 0;
    for (int i = 0; i < d->n && !rc; i++) {
        rc = sizes_deep(v, &d->at[i].sizes, DERIVE_DEEP_FLOPS, &deep, err);
        if (rc) break;
        exponential_deepen(v, &d->at[i].sizes, &deep);
        add_timed(&all, v, &d->at[i], &deep);
    }
    if (!rc) rc = measure_cases(&all, err);
    for (int i = 0; i < d->n && !rc; i++) raise_by_checks(t, &d->at[i]);
    if (!rc) pool(t, d);
    for (int i = 0; i < d->n && !rc; i++) rc = measure_whole(&all, v, &d->at[i], err);
    free(all.list);
    return rc;
}
