/* Gathers the errors of honest ways, and makes limits of them. */
#include "tasks/derive/element_limits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sort.h"
#include "tasks/derive/honest.h"
#include "tasks/derive/tf32.h"

/* Errors of a row's elements are smoothed from so many on; shorter ones count with all. */
enum { LEAST_ROW = 16, LEAST_SPREAD = 16 };
static const double OWN = 2, OWN_FLOAT = 4, OF_ROW = 4, ROUNDING = 1.25;
/* Of factors in TF32: by the root mean square error of those that are rounded to the nearest number and what
 * float32 errs at most. By chance few elements err more. */
static const double SPREAD = 3, SPREAD_FEW = 4, FLOAT_PART = 0.5;
static const double MOST_TOGETHER = 48;       /* of the square of what one element counts for, 64 */
static const double MEAN = 1.2, MEAN_FEW = 6; /* of the mean square; by the root of the elements */

/* Which outputs have limits: those of half types, or in float32, by element or all together. */
typedef enum { OF_HALVES, OF_FLOATS, TOGETHER } Kind;

typedef struct {
    Dtype type;
    size_t n, row;
    const double *want;
    double *error; /* by element, the largest */
    double *sum;   /* of the errors of all operators that are stored alone */
    double *got;   /* way after way */
    int ways;
} Gathered;

typedef struct {
    const Task *task;
    Gathered *of; /* by output */
    int floats;   /* of outputs in float32, not of those of half types */
} Gathering;

static int is_half(Dtype d)
{
    return d == DTYPE_F16 || d == DTYPE_BF16;
}

static void take(void *ctx, int way, int single, double *const *got)
{
    Gathering *all = ctx;
    for (int i = 0; i < all->task->n_outputs; i++) {
        Gathered *g = &all->of[i];
        if (!g->n) continue;
        g->got = memory_grow(g->got, (size_t)(way + 1) * g->n, sizeof(double));
        memcpy(g->got + (size_t)way * g->n, got[i], g->n * sizeof(double));
        g->ways = way + 1;
        for (size_t e = 0; e < g->n; e++) {
            double error = fabs(got[i][e] - g->want[e]);
            if (single) g->sum[e] += error;
            g->error[e] = fmax(g->error[e], fmax(error, g->sum[e])); /* NaN is passed over */
        }
    }
}

/* ---- one row ---- */

static double middle(double *x, size_t n)
{
    sort_doubles(x, n);
    return n ? x[n / 2] : 0;
}

/* What an error consists of: a part that the smaller half of the elements has, whatever their sizes, and one
 * that is relative. */
typedef struct {
    double part, relative;
} RowError;

static RowError row_error(const double *want, const double *error, size_t n, double *scratch)
{
    RowError r = {0, 0};
    double square = 0, counted = 0;
    size_t k = 0;
    for (size_t e = 0; e < n; e++)
        if (isfinite(want[e]) && want[e] != 0) scratch[k++] = fabs(want[e]);
    double half = middle(scratch, k);
    for (size_t e = 0; e < n; e++)
        if (fabs(want[e]) <= half && isfinite(error[e])) square += error[e] * error[e], counted++;
    k = 0;
    for (size_t e = 0; e < n; e++)
        if (isfinite(want[e]) && want[e] != 0 && isfinite(error[e]))
            scratch[k++] = error[e] / fabs(want[e]);
    if (counted > 0) r.part = sqrt(square / counted);
    r.relative = middle(scratch, k);
    return r;
}

/* Half of a unit in the last place. The ways have rounded to float32. */
static double half_unit(Dtype d, double x)
{
    if (d == DTYPE_F32) return 0;
    int exponent, bits = d == DTYPE_F16 ? 11 : 8, least = d == DTYPE_F16 ? -24 : -133;
    frexp(x, &exponent);
    exponent = x > 0 && exponent - bits > least ? exponent - bits : least;
    return ldexp(0.5, exponent);
}

static void limit_row(const Gathered *g, size_t from, size_t n, double *scratch, float *limit)
{
    RowError r = row_error(g->want + from, g->error + from, n, scratch);
    double own = g->type == DTYPE_F32 ? OWN_FLOAT : OWN;
    for (size_t e = from; e < from + n; e++) {
        double size = fabs(g->want[e]);
        double error = fmax(own * g->error[e], OF_ROW * (r.part + r.relative * size));
        double all = error + ROUNDING * half_unit(g->type, size + error);
        limit[e] = isfinite(all) && all < (double)INFINITY ? (float)all : INFINITY;
    }
}

/* ---- an output ---- */

static double mean_of_ways(const Gathered *g, const ElementLimits *e)
{
    double most = 0;
    size_t size = dtype_size(g->type);
    unsigned char *raw = memory_array(g->n + 1, size);
    for (int k = 0; k < g->ways; k++) {
        dtype_from_double(g->type, g->got + (size_t)k * g->n, raw, g->n);
        most = fmax(most, task_mean_square(e, g->type, raw, g->want));
    }
    free(raw);
    return most * (MEAN + MEAN_FEW / sqrt((double)g->n));
}

static ElementLimits *limits_from(const Gathered *g)
{
    ElementLimits *e = memory_alloc(sizeof *e);
    size_t row = g->row < LEAST_ROW ? g->n : g->row;
    double *scratch = memory_array(row + 1, sizeof *scratch);
    e->n = g->n;
    e->limit = memory_array(g->n + 1, sizeof *e->limit);
    for (size_t from = 0; from < g->n; from += row)
        limit_row(g, from, row < g->n - from ? row : g->n - from, scratch, e->limit);
    e->most = g->type == DTYPE_F32 ? NAN : mean_of_ways(g, e);
    free(scratch);
    return e;
}

/* All elements together, where the tolerance of a single one says little: a few that cancel need it. */
static ElementLimits *limits_together(const Gathered *g)
{
    double *scratch = memory_array(g->n + 1, sizeof *scratch);
    size_t k = 0;
    for (size_t e = 0; e < g->n; e++)
        if (isfinite(g->error[e])) scratch[k++] = g->error[e];
    ElementLimits *e = memory_alloc(sizeof *e);
    *e = (ElementLimits){.n = g->n, .unit = middle(scratch, k)};
    free(scratch);
    e->most = e->unit > 0 ? SPREAD * SPREAD * mean_of_ways(g, e) : NAN;
    if (e->most > 0 && task_tolerance_tells(sqrt(e->most) * e->unit, g->want, g->n) &&
        e->most < MOST_TOGETHER)
        return e;
    element_limits_free(e);
    return NULL;
}

static int gather(const TaskCase *c, const double *const *in, Gathering *all, Error *err)
{
    const Task *t = c->task;
    int any = 0;
    for (int i = 0; i < t->n_outputs; i++) {
        const TaskTensor *y = &t->outputs[i];
        Gathered *g = &all->of[i];
        int64_t shape[TASK_MAX_RANK];
        if (all->floats ? y->dtype != DTYPE_F32 : !is_half(y->dtype)) continue;
        if (task_elements(t, c->workload, y, &g->n, err) ||
            task_shape(t, c->workload, y, shape, err))
            return -1;
        g->row = y->rank > 1 ? (size_t)shape[y->rank - 1] : g->n;
        g->type = y->dtype;
        g->error = memory_array(g->n + 1, sizeof *g->error);
        g->sum = memory_array(g->n + 1, sizeof *g->sum);
        any |= g->n > 0;
    }
    return any ? honest_outputs(c, in, take, all, err) : 1;
}

/* ---- TF32 ---- */

static double root_mean_square(const double *x, size_t n)
{
    double sum = 0, counted = 0;
    for (size_t i = 0; i < n; i++)
        if (isfinite(x[i])) sum += x[i] * x[i], counted++;
    return counted > 0 ? sqrt(sum / counted) : 0;
}

/* The tolerance of float32. Sizes that task.json does not list have that of the largest check. */
static int single_tolerance(const TaskCase *c, int output, Tolerance *out)
{
    const Workload *listed = task_largest_check(c->task);
    TaskCase of = *c;
    if (!c->workload->atol && listed && listed->atol) of.workload = listed;
    return task_tolerance(&of, output, out, NULL);
}

/* The limit of all elements together, where factors are in TF32: a single element has the tolerance alone.
 * usual: the error in float32, where it is known. Takes the drift. */
static ElementLimits *spread_limits(const TaskCase *c, int output, const double *want, double usual,
                                    Tf32Spread *of)
{
    Tolerance by;
    size_t n;
    if (!of->drift[output] || !(of->rms[output] > 0) || single_tolerance(c, output, &by) ||
        task_elements(c->task, c->workload, &c->task->outputs[output], &n, NULL) ||
        n < LEAST_SPREAD)
        return NULL;
    ElementLimits *e = memory_alloc(sizeof *e);
    double most = SPREAD * (1 + SPREAD_FEW / (double)n),
           single = FLOAT_PART * (by.atol + by.rtol * root_mean_square(want, n));
    if (usual > 0) single = usual;
    *e = (ElementLimits){n, most * most, NULL, of->drift[output], hypot(of->rms[output], single)};
    of->drift[output] = NULL;
    return e;
}

/* Some output in float32 has enough elements. */
static int has_spread(const TaskCase *c)
{
    size_t n, any = 0;
    for (int i = 0; i < c->task->n_outputs; i++)
        any |= c->task->outputs[i].dtype == DTYPE_F32 &&
               !task_elements(c->task, c->workload, &c->task->outputs[i], &n, NULL) &&
               n >= LEAST_SPREAD;
    return any != 0;
}

/* out[i]: on entry what all elements together have in float32, or NULL. */
static int add_spreads(const TaskCase *c, const double *const *in, const double *const *want,
                       ElementLimits **out, Error *err)
{
    Tf32Spread s = {0};
    if (!c->task->tf32 || c->variant != VARIANT_DRAWN || !has_spread(c)) return 0;
    int rc = tf32_spread(c, in, want, &s, err);
    for (int i = 0; i < c->task->n_outputs; i++) {
        if (!rc && c->task->outputs[i].dtype == DTYPE_F32) {
            double usual = out[i] ? out[i]->unit : 0;
            element_limits_free(out[i]);
            out[i] = spread_limits(c, i, want[i], usual, &s);
        }
        free(s.drift[i]);
    }
    return rc < 0 ? -1 : 0;
}

/* The tolerance of an output in float32 is wide beside the spread of its elements. */
static int is_blunt(const TaskCase *c, int output, const double *want)
{
    Tolerance by;
    size_t n;
    return c->variant == VARIANT_DRAWN && c->task->outputs[output].dtype == DTYPE_F32 &&
           !single_tolerance(c, output, &by) &&
           !task_elements(c->task, c->workload, &c->task->outputs[output], &n, NULL) &&
           n >= LEAST_SPREAD && !task_tolerance_tells(by.atol, want, n);
}

static int any_blunt(const TaskCase *c, const double *const *want)
{
    int any = 0;
    for (int i = 0; i < c->task->n_outputs; i++) any |= is_blunt(c, i, want[i]);
    return any;
}

/* 1: they cost too much, or there are none. */
static int limits_of(const TaskCase *c, const double *const *in, const double *const *want,
                     Kind kind, ElementLimits **out, Error *err)
{
    const Task *t = c->task;
    Gathering all = {t, memory_array((size_t)t->n_outputs, sizeof(Gathered)), kind != OF_HALVES};
    for (int i = 0; i < t->n_outputs; i++) all.of[i].want = want[i];
    int rc = gather(c, in, &all, err);
    for (int i = 0; i < t->n_outputs; i++) {
        Gathered *g = &all.of[i];
        if (!rc && g->n && kind != TOGETHER) out[i] = limits_from(g);
        if (!rc && g->n && kind == TOGETHER && is_blunt(c, i, want[i])) out[i] = limits_together(g);
        free(g->error);
        free(g->sum);
        free(g->got);
    }
    free(all.of);
    return rc;
}

int element_limits(const TaskCase *c, const double *const *in, const double *const *want,
                   ElementLimits **out, Error *err)
{
    for (int i = 0; i < c->task->n_outputs; i++) out[i] = NULL;
    int rc = limits_of(c, in, want, OF_HALVES, out, err);
    if (rc >= 0 && any_blunt(c, want)) rc = limits_of(c, in, want, TOGETHER, out, err);
    return rc < 0 || add_spreads(c, in, want, out, err) ? -1 : 0;
}

int element_limits_float(const TaskCase *c, const double *const *in, const double *const *want,
                         ElementLimits **out, Error *err)
{
    for (int i = 0; i < c->task->n_outputs; i++) out[i] = NULL;
    return limits_of(c, in, want, OF_FLOATS, out, err);
}

void element_limits_free(ElementLimits *e)
{
    if (!e) return;
    free(e->limit);
    free(e->drift);
    free(e);
}
