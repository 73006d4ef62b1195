/* The k-th smallest element along one dimension and its index, the first one of equals; NaN is the largest.
 * As in eager PyTorch a block has a row and finds the element's bits by two at a time, from counts over the
 * row. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/memory.h"
#include "base/part.h"
#include "ops/op_text.h"

EMBED(op_select_cu, "ops/row/family_select.cu")

enum { SELECT_THREADS = 1024 };

typedef struct {
    int median, keep, dim;
    int64_t rows, n, inner, k; /* k counts from 0 */
} Select;

static int select_of(const OpCall *c, Select *s, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    int k = op_argument(c->op, "k");
    *s = (Select){.median = k < 0, .keep = c->arg[op_argument(c->op, "keepdim")].integer[0] != 0};
    int64_t dim = c->arg[op_argument(c->op, "dim")].integer[0];
    if (op_rows(x, dim, &s->rows, &s->n, &s->inner, err) || op_dim(dim, x->rank, &s->dim, err))
        return -1;
    if (x->dtype != DTYPE_F32 && x->dtype != DTYPE_F64 && x->dtype != DTYPE_F16 &&
        x->dtype != DTYPE_BF16)
        return error_set(err, ERROR_UNSUPPORTED, "expected a floating-point type, found %s",
                         dtype_name(x->dtype));
    if (s->n < 1 || s->n > INT32_MAX / 2)
        return error_set(err, ERROR_INVALID, "a row of %lld elements", (long long)s->n);
    s->k = s->median ? (s->n - 1) / 2 : c->arg[k].integer[0] - 1;
    if (s->k < 0 || s->k >= s->n)
        return error_set(err, ERROR_INVALID, "k: expected 1 to %lld, found %lld", (long long)s->n,
                         (long long)s->k + 1);
    return 0;
}

static int infer(OpCall *c, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    int64_t size[OP_MAX_RANK];
    int rank = 0;
    Select s;
    if (select_of(c, &s, err)) return -1;
    for (int d = 0; d < x->rank; d++)
        if (d != s.dim || s.keep) size[rank++] = d == s.dim ? 1 : x->size[d];
    return op_result(c, x->dtype, rank, size, err) || op_result(c, DTYPE_I64, rank, size, err) ? -1
                                                                                               : 0;
}

/* ---- reference ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    if (isnan(x) || isnan(y)) return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

static int reference(const OpCall *c, const double *const *in, double *const *out, Error *err)
{
    const double *x = in[c->arg[0].integer[0]];
    Select s;
    if (select_of(c, &s, err)) return -1;
#pragma omp parallel for if (s.rows * s.n >= 1 << 14)
    for (int64_t r = 0; r < s.rows; r++) {
        const double *first = x + r / s.inner * s.n * s.inner + r % s.inner;
        double *row = memory_array((size_t)s.n, sizeof *row);
        int64_t at = 0;
        for (int64_t i = 0; i < s.n; i++) row[i] = first[i * s.inner];
        qsort(row, (size_t)s.n, sizeof *row, ascending);
        double v = row[s.median && isnan(row[s.n - 1]) ? s.n - 1 : s.k];
        while (!(first[at * s.inner] == v || (isnan(v) && isnan(first[at * s.inner])))) at++;
        out[0][r] = v;
        out[1][r] = (double)at;
        free(row);
    }
    return 0;
}

/* ---- kernel ---- */

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    char name[24], place[48], operands[160];
    Buffer *b = out->source;
    Select s;
    snprintf(name, sizeof name, "x%lld", (long long)c->arg[0].integer[0]);
    if (select_of(c, &s, err) || text_dense(out, name, x, place, sizeof place, err)) return -1;
    int threads = s.n > SELECT_THREADS ? SELECT_THREADS : (int)(s.n + 31) / 32 * 32;
    snprintf(operands, sizeof operands, "%.*s y0 y1 n=%lld inner:%lld", (int)strcspn(place, " "),
             place, (long long)s.n, (long long)s.inner);
    part_put(b, op_select_cu, "order");
    if (!text_begin(out, &(TextHead){"select", operands, s.rows, threads}, err)) return -1;
    buffer_printf(b,
                  "    typedef %s T;\n    typedef %s U;\n"
                  "    constexpr int BITS = %d, LEAST = %d;\n"
                  "    const long long row = blockIdx.x;\n"
                  "    const %s *x = %s + row / inner * n * inner + row %% inner;\n"
                  "    int k = %lld;\n",
                  text_type(x->dtype), x->dtype == DTYPE_F64 ? "unsigned long long" : "unsigned",
                  x->dtype == DTYPE_F64 ? 64 : 32,
                  /* the bits of a half type: its significand has 10 of a float's 23, or 7 */
                  x->dtype == DTYPE_F16    ? 12
                  : x->dtype == DTYPE_BF16 ? 16
                                           : 0,
                  dtype_ctype(x->dtype), place, (long long)s.k);
    if (s.median)
        part_fill(b, op_select_cu, "nans", "ends=%s",
                  "(n + (int)blockDim.x - 1) / (int)blockDim.x * (int)blockDim.x");
    part_put(b, op_select_cu, "select");
    return text_end(out, err);
}

static const Op table[] = {
    {"aten.median.dim", "Tensor self, int dim, bool keepdim=False", infer, reference, plain,
     op_cost_elements, 0, NULL, NULL},
    {"aten.kthvalue.default", "Tensor self, int k, int dim=-1, bool keepdim=False", infer,
     reference, plain, op_cost_elements, 0, NULL, NULL},
};

const OpFamily select_family = {"select", table, sizeof table / sizeof *table};
