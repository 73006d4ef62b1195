/* Softmax, its logarithm, and the logarithm of a sum of exponentials. */
#include <math.h>

#include "ops/op_chain.h"
#include "ops/op_element.h"
#include "ops/row/op_softmax.h"

int softmax_of(const OpCall *c, Softmax *s, Error *err)
{
    *s = (Softmax){.logarithm = *(const int *)c->op->detail};
    return op_rows(op_tensor(c, 0), c->arg[1].integer[0], &s->rows, &s->n, &s->inner, err);
}

static int infer(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    Dtype d = x->dtype;
    Softmax s;
    if (softmax_of(c, &s, err)) return -1;
    if (c->arg[2].kind == OP_DTYPE) d = (Dtype)c->arg[2].integer[0];
    if (c->arg[2].kind == OP_BOOL && c->arg[2].integer[0]) d = DTYPE_F32;
    if (!dtype_is_float(d))
        return error_set(err, ERROR_INVALID, "expected a floating dtype, found %s", dtype_name(d));
    return op_result(c, d, x->rank, x->size, err);
}

typedef struct {
    double largest, sum;
} RowSum;

static RowSum row_sum(const Softmax *s, const double *x)
{
    double largest = -INFINITY, sum = 0, part = 0;
    for (int64_t i = 0; i < s->n; i++)
        if (x[i * s->inner] > largest || isnan(x[i * s->inner])) largest = x[i * s->inner];
    for (int64_t i = 0; i < s->n; i++) {
        part += exp(x[i * s->inner] - largest);
        if (i % 1024 == 1023) sum += part, part = 0;
    }
    return (RowSum){largest, sum + part};
}

static double row_value(const Softmax *s, const RowSum *r, double x)
{
    return s->logarithm ? x - r->largest - log(r->sum) : exp(x - r->largest) / r->sum;
}

static void row(const Softmax *s, const double *x, double *y)
{
    RowSum r = row_sum(s, x);
    double shift = log(r.sum);
    for (int64_t i = 0; i < s->n; i++) {
        double d = x[i * s->inner] - r.largest;
        y[i * s->inner] = s->logarithm ? d - shift : exp(d) / r.sum;
    }
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const double *x = in[c->arg[0].integer[0]];
    Softmax s;
    if (softmax_of(c, &s, err)) return -1;
#pragma omp parallel for if (s.rows * s.n >= 1 << 14)
    for (int64_t r = 0; r < s.rows; r++) {
        int64_t at = r / s.inner * s.n * s.inner + r % s.inner;
        row(&s, x + at, out[0] + at);
    }
    return 0;
}

/* ---- single elements ---- */

static int64_t row_of(const Softmax *s, int64_t i)
{
    return i / (s->n * s->inner) * s->inner + i % s->inner;
}

static void element_rows(const OpCall *c, int result, const int64_t *at, int64_t n, int64_t *row)
{
    Error ignored;
    Softmax s;
    (void)result;
    if (softmax_of(c, &s, &ignored)) return; /* never: the call has been inferred */
    for (int64_t k = 0; k < n; k++) row[k] = row_of(&s, at[k]);
}

static int64_t row_first(const Softmax *s, int64_t row)
{
    return row / s->inner * s->n * s->inner + row % s->inner;
}

static void element_needs(const OpCall *c, const OpSome *some, const OpNeeds *out)
{
    int64_t before = -1;
    Error ignored;
    Softmax s;
    if (softmax_of(c, &s, &ignored)) return;
    for (int64_t k = 0; k < some->n; k++) {
        int64_t r = row_of(&s, some->at[k]);
        if (r != before)
            out->add(out->of, (int)c->arg[0].integer[0], row_first(&s, r), s.inner, s.n);
        before = r;
    }
}

static void element_compute(const OpCall *c, const double *const *in, const OpSome *some, double *y)
{
    const double *x = in[c->arg[0].integer[0]];
    int64_t before = -1;
    RowSum sum = {0, 0};
    Error ignored;
    Softmax s;
    if (softmax_of(c, &s, &ignored)) return;
    for (int64_t k = 0; k < some->n; k++) {
        int64_t r = row_of(&s, some->at[k]);
        if (r != before) sum = row_sum(&s, x + row_first(&s, r));
        before = r;
        y[k] = row_value(&s, &sum, x[some->at[k]]);
    }
}

static const OpElements elements = {element_needs, element_compute, element_rows, NULL};

static void cost(const OpCall *c, OpCost *out)
{
    out->flops = 5 * (double)op_elements(op_tensor(c, 0)); /* max, subtract, exp, sum, scale */
}

/* The largest element of each row is taken away before exp, unless it is infinite. */
static int logsumexp(Chain *k, const OpCall *c)
{
    int x = chain_input(k, 0), keep = (int)c->arg[2].integer[0];
    ChainArg dims = {.kind = OP_INTS, .n = c->arg[1].n};
    if (dims.n > OP_MAX_RANK) return chain_fail(k, ERROR_INVALID, "too many dimensions");
    for (int i = 0; i < dims.n; i++) dims.integer[i] = c->arg[1].integer[i];
    if (!op_elements(op_tensor(c, 0))) {
        int e = chain_call(k, "aten.exp.default", 1, (ChainArg[]){CHAIN_TENSOR(x)});
        e = chain_call(k, "aten.sum.dim_IntList", 3,
                       (ChainArg[]){CHAIN_TENSOR(e), dims, CHAIN_BOOL(keep)});
        return chain_call(k, "aten.log.default", 1, (ChainArg[]){CHAIN_TENSOR(e)});
    }
    int largest =
        chain_call(k, "aten.amax.default", 3, (ChainArg[]){CHAIN_TENSOR(x), dims, CHAIN_BOOL(1)});
    int size = chain_call(k, "aten.abs.default", 1, (ChainArg[]){CHAIN_TENSOR(largest)});
    int infinite =
        chain_call(k, "aten.eq.Scalar", 2, (ChainArg[]){CHAIN_TENSOR(size), CHAIN_FLOAT(INFINITY)});
    largest =
        chain_over(k, "aten.masked_fill.Scalar", largest, 3,
                   (ChainArg[]){CHAIN_TENSOR(largest), CHAIN_TENSOR(infinite), CHAIN_FLOAT(0)});
    int d =
        chain_call(k, "aten.sub.Tensor", 2, (ChainArg[]){CHAIN_TENSOR(x), CHAIN_TENSOR(largest)});
    d = chain_over(k, "aten.exp.default", d, 1, (ChainArg[]){CHAIN_TENSOR(d)});
    int y = chain_call(k, "aten.sum.dim_IntList", 3,
                       (ChainArg[]){CHAIN_TENSOR(d), dims, CHAIN_BOOL(keep)});
    y = chain_over(k, "aten.log.default", y, 1, (ChainArg[]){CHAIN_TENSOR(y)});
    if (!keep && dims.n)
        largest = chain_call(k, "aten.squeeze.dims", 2, (ChainArg[]){CHAIN_TENSOR(largest), dims});
    else if (!keep)
        largest = chain_call(k, "aten.squeeze.default", 1, (ChainArg[]){CHAIN_TENSOR(largest)});
    return chain_over(k, "aten.add.Tensor", y, 2,
                      (ChainArg[]){CHAIN_TENSOR(y), CHAIN_TENSOR(largest)});
}

#define ROW(aten, schema, logarithm)                                                             \
    {                                                                                            \
        "aten." aten, "Tensor self, int dim, " schema, infer, reference, softmax_plain, cost, 0, \
            &(const int){logarithm}, NULL, &elements                                             \
    }

static const Op table[] = {
    ROW("softmax.int", "ScalarType? dtype=None", 0),
    ROW("_softmax.default", "bool half_to_float", 0),
    ROW("log_softmax.int", "ScalarType? dtype=None", 1),
    ROW("_log_softmax.default", "bool half_to_float", 1),
    CHAIN("aten.logsumexp.default", "Tensor self, int[1] dim, bool keepdim=False", logsumexp),
};

const OpFamily softmax_family = {"softmax", table, sizeof table / sizeof *table};
