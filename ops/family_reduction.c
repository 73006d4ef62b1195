/* Reductions over some or all dimensions. In references one thread computes an output, in an order
 * that does not depend on the number of threads. */
#include <math.h>
#include <string.h>

#include "ops/op_element.h"
#include "ops/op_reduction.h"
#include "ops/op_text.h"

static ReduceKind kind_of(const OpCall *c)
{
    return *(const ReduceKind *)c->op->detail;
}

/* Bit d: dimension d is reduced. No list, or an empty one, means all. */
static int mask_of(const OpCall *c, int *mask, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    int at = op_argument(c->op, "dim"), dim;
    const OpValue *v = at < 0 ? NULL : &c->arg[at];
    int n = !v ? 0 : v->kind == OP_INT ? 1 : v->kind == OP_INTS ? v->n : 0;
    *mask = n ? 0 : (1 << x->rank) - 1;
    for (int i = 0; i < n; i++) {
        if (op_dim(v->integer[i], x->rank, &dim, err)) return -1;
        if (*mask & 1 << dim)
            return error_set(err, ERROR_INVALID, "dimension %d is given twice", dim);
        *mask |= 1 << dim;
    }
    return 0;
}

/* The p of a norm, or the correction of a variance: 1 when none is given. */
static int order_of(const OpCall *c, double *order, Error *err)
{
    static const char *const names[] = {"ord", "p", "correction", "unbiased"};
    *order = kind_of(c) == REDUCE_NORM ? 2 : 1;
    for (int i = 0; i < 4; i++) {
        int at = op_argument(c->op, names[i]);
        if (at >= 0 && c->arg[at].kind != OP_NONE) *order = c->arg[at].number;
    }
    return isnan(*order) ? error_set(err, ERROR_INVALID, "the order of a norm is NaN") : 0;
}

int reduction_of(const OpCall *c, int logical, Reduction *r, Error *err)
{
    OpTensor x = *op_tensor(c, 0);
    int mask;
    *r = (Reduction){.kind = kind_of(c), .outputs = 1, .inputs = 1};
    if (mask_of(c, &mask, err) || order_of(c, &r->order, err)) return -1;
    r->dims = (unsigned)mask;
    if (logical) op_contiguous(&x);
    for (int d = 0; d < x.rank; d++) {
        int64_t step = x.size[d] == 1 ? 0 : x.stride[d];
        if (mask & 1 << d) {
            r->reduced_size[r->reduced] = x.size[d];
            r->reduced_step[r->reduced++] = step;
            r->inputs *= x.size[d];
        } else {
            r->kept_size[r->kept] = x.size[d];
            r->kept_step[r->kept++] = step;
            r->outputs *= x.size[d];
        }
    }
    return 0;
}

int reduction_is_spread(ReduceKind k)
{
    return k >= REDUCE_VAR && k <= REDUCE_STD_MEAN;
}

static int needs_elements(ReduceKind k)
{
    return k == REDUCE_MAX || k == REDUCE_MIN || (k >= REDUCE_ARGMAX && k <= REDUCE_MIN_AT);
}

static int result_dtype(const OpCall *c, Dtype *d, Error *err)
{
    int at = op_argument(c->op, "dtype");
    ReduceKind k = kind_of(c);
    *d = op_tensor(c, 0)->dtype;
    if (k == REDUCE_ARGMAX || k == REDUCE_ARGMIN) *d = DTYPE_I64;
    if (k == REDUCE_ANY || k == REDUCE_ALL) *d = DTYPE_B8;
    if ((k == REDUCE_SUM || k == REDUCE_PROD) && !dtype_is_float(*d)) *d = DTYPE_I64;
    if (at >= 0 && c->arg[at].kind == OP_DTYPE) *d = (Dtype)c->arg[at].integer[0];
    if ((k == REDUCE_MEAN || k == REDUCE_NORM || reduction_is_spread(k)) && !dtype_is_float(*d))
        return error_set(err, ERROR_INVALID, "expected a floating dtype, found %s", dtype_name(*d));
    return 0;
}

static int infer(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    Reduction r;
    Dtype d;
    int64_t size[OP_MAX_RANK];
    int keep = op_argument(c->op, "keepdim"), mask, rank = 0;
    if (reduction_of(c, 0, &r, err) || mask_of(c, &mask, err) || result_dtype(c, &d, err))
        return -1;
    if (needs_elements(r.kind) && !r.inputs && r.outputs)
        return error_set(err, ERROR_INVALID, "no elements have no largest or smallest one");
    keep = keep >= 0 && c->arg[keep].integer[0];
    for (int i = 0; i < x->rank; i++)
        if (keep || !(mask & 1 << i)) size[rank++] = mask & 1 << i ? 1 : x->size[i];
    if (op_result(c, d, rank, size, err)) return -1;
    switch (r.kind) {
    case REDUCE_MAX_AT:
    case REDUCE_MIN_AT: return op_result(c, DTYPE_I64, rank, size, err);
    case REDUCE_VAR_MEAN:
    case REDUCE_STD_MEAN: return op_result(c, d, rank, size, err);
    default: return 0;
    }
}

/* ---- reference ---- */

typedef struct {
    double sum, part, best; /* part: of the last 1024 terms */
    int64_t n, at;
} State;

static double power(double x, double p)
{
    x = fabs(x);
    return p == 2 ? x * x : p == 1 ? x : p == 0 ? x != 0 : pow(x, p);
}

static void step(State *s, const Reduction *r, double x, double mean)
{
    switch (r->kind) {
    case REDUCE_SUM:
    case REDUCE_MEAN: s->part += x; break;
    case REDUCE_PROD: s->best *= x; break;
    case REDUCE_NORM:
        if (isinf(r->order))
            x = fabs(x);
        else
            s->part += power(x, r->order);
        break;
    case REDUCE_VAR:
    case REDUCE_STD:
    case REDUCE_VAR_MEAN:
    case REDUCE_STD_MEAN: s->part += (x - mean) * (x - mean); break;
    case REDUCE_ANY:
    case REDUCE_ALL: s->part += x != 0; break;
    default: break;
    }
    int least = r->kind == REDUCE_MIN || r->kind == REDUCE_ARGMIN || r->kind == REDUCE_MIN_AT ||
                (r->kind == REDUCE_NORM && r->order < 0);
    if (r->kind != REDUCE_PROD &&
        (!s->n || (isnan(x) && !isnan(s->best)) || (least ? x < s->best : x > s->best))) {
        s->best = x;
        s->at = s->n;
    }
    if (++s->n % 1024 == 0) {
        s->sum += s->part;
        s->part = 0;
    }
}

/* Walks the reduced elements in C order. */
static void walk(State *s, const Reduction *r, const double *x, double mean)
{
    int64_t n[OP_MAX_RANK + 1] = {1}, stride[OP_MAX_RANK + 1] = {0}, at[OP_MAX_RANK] = {0};
    int rank = op_merge(r->reduced, r->reduced_size, r->reduced_step, n, stride);
    *s = (State){.best = r->kind == REDUCE_PROD};
    if (!rank) n[rank++] = 1;
    for (int64_t left = r->inputs ? r->inputs / n[rank - 1] : 0; left > 0; left--) {
        int64_t base = 0;
        for (int d = 0; d < rank - 1; d++) base += at[d] * stride[d];
        for (int64_t i = 0; i < n[rank - 1]; i++) step(s, r, x[base + i * stride[rank - 1]], mean);
        for (int d = rank - 2; d >= 0 && ++at[d] == n[d]; d--) at[d] = 0;
    }
    s->sum += s->part;
}

static double value(const State *s, const Reduction *r)
{
    double n = (double)r->inputs, spread = n - r->order > 0 ? n - r->order : 0;
    switch (r->kind) {
    case REDUCE_SUM: return s->sum;
    case REDUCE_MEAN: return s->sum / n;
    case REDUCE_ARGMAX:
    case REDUCE_ARGMIN: return (double)s->at;
    case REDUCE_NORM:
        return isinf(r->order)                  ? (r->inputs ? s->best : 0)
               : r->order == 2                  ? sqrt(s->sum)
               : r->order == 1 || r->order == 0 ? s->sum
                                                : pow(s->sum, 1 / r->order);
    case REDUCE_VAR:
    case REDUCE_VAR_MEAN: return s->sum / spread;
    case REDUCE_STD:
    case REDUCE_STD_MEAN: return sqrt(s->sum / spread);
    case REDUCE_ANY: return s->sum > 0;
    case REDUCE_ALL: return s->sum == n;
    default: return s->best;
    }
}

/* Where the elements of output o begin. */
static int64_t base_of(const Reduction *r, int64_t o)
{
    int64_t base = 0;
    for (int d = r->kept - 1; d >= 0; o /= r->kept_size[d--])
        base += o % r->kept_size[d] * r->kept_step[d];
    return base;
}

/* Output o, and what the second result has for it. */
static double reduced(const Reduction *r, const double *x, int64_t o, double *second)
{
    int spread = reduction_is_spread(r->kind);
    double mean = 0;
    State s;
    x += base_of(r, o);
    if (spread) {
        Reduction sum = *r;
        sum.kind = REDUCE_SUM;
        walk(&s, &sum, x, 0);
        mean = s.sum / (double)r->inputs;
    }
    walk(&s, r, x, mean);
    *second = spread ? mean : (double)s.at;
    return value(&s, r);
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const double *x = in[c->arg[0].integer[0]];
    Reduction r;
    if (reduction_of(c, 1, &r, err)) return -1;
#pragma omp parallel for if (r.outputs * r.inputs >= 1 << 16)
    for (int64_t o = 0; o < r.outputs; o++) {
        double second;
        out[0][o] = reduced(&r, x, o, &second);
        if (c->n_results > 1) out[1][o] = second;
    }
    return 0;
}

static void element_needs(const OpCall *c, const OpSome *s, const OpNeeds *out)
{
    int64_t n[OP_MAX_RANK + 1] = {1}, step[OP_MAX_RANK + 1] = {0};
    Error ignored;
    Reduction r;
    if (reduction_of(c, 1, &r, &ignored) || !r.inputs) return;
    int rank = op_merge(r.reduced, r.reduced_size, r.reduced_step, n, step);
    if (!rank) rank++;
    for (int64_t k = 0; k < s->n; k++)
        for (int64_t row = 0; row < r.inputs / n[rank - 1]; row++) {
            int64_t at = base_of(&r, s->at[k]), rest = row;
            for (int d = rank - 2; d >= 0; rest /= n[d--]) at += rest % n[d] * step[d];
            out->add(out->of, (int)c->arg[0].integer[0], at, step[rank - 1], n[rank - 1]);
        }
}

static void element_compute(const OpCall *c, const double *const *in, const OpSome *s, double *y)
{
    Error ignored;
    Reduction r;
    if (reduction_of(c, 1, &r, &ignored)) return;
    for (int64_t k = 0; k < s->n; k++) {
        double second, first = reduced(&r, in[c->arg[0].integer[0]], s->at[k], &second);
        y[k] = s->result ? second : first;
    }
}

static const OpElements elements = {element_needs, element_compute, NULL, NULL};

#define ROW(aten, schema, kind)                                                                  \
    {                                                                                            \
        "aten." aten, "Tensor self" schema, infer, reference, reduction_plain, op_cost_elements, \
            0, &kinds[kind], NULL, &elements                                                     \
    }
#define DIMS ", int[1]? dim, bool keepdim=False"
#define SOME ", int[1] dim=[], bool keepdim=False"
#define ONE ", int dim, bool keepdim=False"
#define MAYBE ", int? dim=None, bool keepdim=False"
#define UNBIASED ", bool unbiased=True"
#define CORRECTION ", int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False"
#define DTYPE ", *, ScalarType? dtype=None"

#define SPREADS(aten, kind)                                                          \
    ROW(aten ".correction", CORRECTION, kind), ROW(aten ".default", UNBIASED, kind), \
        ROW(aten ".dim", ", int[1]? dim" UNBIASED ", bool keepdim=False", kind)

static const ReduceKind kinds[] = {REDUCE_SUM,      REDUCE_MEAN,     REDUCE_PROD,   REDUCE_MAX,
                                   REDUCE_MIN,      REDUCE_ARGMAX,   REDUCE_ARGMIN, REDUCE_MAX_AT,
                                   REDUCE_MIN_AT,   REDUCE_NORM,     REDUCE_VAR,    REDUCE_STD,
                                   REDUCE_VAR_MEAN, REDUCE_STD_MEAN, REDUCE_ANY,    REDUCE_ALL};

static const Op table[] = {
    ROW("sum.default", DTYPE, REDUCE_SUM),
    ROW("sum.dim_IntList", DIMS DTYPE, REDUCE_SUM),
    ROW("mean.default", DTYPE, REDUCE_MEAN),
    ROW("mean.dim", DIMS DTYPE, REDUCE_MEAN),
    ROW("prod.default", DTYPE, REDUCE_PROD),
    ROW("prod.dim_int", ONE DTYPE, REDUCE_PROD),
    ROW("max.default", "", REDUCE_MAX),
    ROW("min.default", "", REDUCE_MIN),
    ROW("amax.default", SOME, REDUCE_MAX),
    ROW("amin.default", SOME, REDUCE_MIN),
    ROW("max.dim", ONE, REDUCE_MAX_AT),
    ROW("min.dim", ONE, REDUCE_MIN_AT),
    ROW("argmax.default", MAYBE, REDUCE_ARGMAX),
    ROW("argmin.default", MAYBE, REDUCE_ARGMIN),
    ROW("linalg_vector_norm.default", ", Scalar ord=2, int[1]? dim=None, bool keepdim=False" DTYPE,
        REDUCE_NORM),
    ROW("norm.ScalarOpt_dim", ", Scalar? p, int[1] dim, bool keepdim=False", REDUCE_NORM),
    ROW("norm.Scalar", ", Scalar p=2", REDUCE_NORM),
    SPREADS("var", REDUCE_VAR),
    SPREADS("std", REDUCE_STD),
    SPREADS("var_mean", REDUCE_VAR_MEAN),
    SPREADS("std_mean", REDUCE_STD_MEAN),
    ROW("any.default", "", REDUCE_ANY),
    ROW("all.default", "", REDUCE_ALL),
    ROW("any.dim", ONE, REDUCE_ANY),
    ROW("all.dim", ONE, REDUCE_ALL),
};

const OpFamily reduction_family = {"reduction", table, sizeof table / sizeof *table};
