/* The k-th smallest element along one dimension and its index, the first one of equals; NaN is the largest.
 * As in eager PyTorch a block has a row and finds the element's bits by two at a time, from counts over the
 * row. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/op_text.h"

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

/* op_order(v): bits that rise with v; all are set of NaN. */
static const char order_text[] =
    "#ifndef OP_ORDER\n"
    "#define OP_ORDER\n"
    "__device__ unsigned op_order(float v)\n"
    "{\n"
    "    const unsigned bits = __float_as_uint(v == 0 ? 0.0f : v);\n"
    "    return v == v ? bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u) : 0xffffffffu;\n"
    "}\n"
    "__device__ unsigned long long op_order(double v)\n"
    "{\n"
    "    const unsigned long long bits = __double_as_longlong(v == 0 ? 0.0 : v);\n"
    "    const unsigned long long all = 0xffffffffffffffffULL;\n"
    "    return v == v ? bits ^ (bits >> 63 ? all : 0x8000000000000000ULL) : all;\n"
    "}\n"
    "#endif\n";

static const char select_text[] =
    "    __shared__ int counts[4], found;\n"
    "    const int ends = (n + blockDim.x - 1) / blockDim.x * blockDim.x;\n"
    "    U wanted = 0, known = 0;\n"
    "    if (threadIdx.x == 0) found = n;\n"
    "    for (int digit = BITS - 2; digit >= LEAST; digit -= 2) {\n"
    "        int own[4] = {0, 0, 0, 0};\n"
    "        if (threadIdx.x < 4) counts[threadIdx.x] = 0;\n"
    "        __syncthreads();\n"
    "        for (int i = threadIdx.x; i < ends; i += blockDim.x) {\n"
    "            const U v = i < n ? op_order((T)x[i * inner]) : 0;\n"
    "            const bool has = i < n && (v & known) == wanted;\n"
    "#pragma unroll\n"
    "            for (int j = 0; j < 4; j++)\n"
    "                own[j] += __popc(__ballot_sync(0xffffffffu, has && (v >> digit & 3) == j));\n"
    "        }\n"
    "        if (threadIdx.x % 32 == 0)\n"
    "            for (int j = 0; j < 4; j++) atomicAdd(&counts[j], own[j]);\n"
    "        __syncthreads();\n"
    "        int j = 0, left[4];\n"
    "        for (int m = 0; m < 4; m++) left[m] = counts[m];\n"
    "        __syncthreads();\n"
    "        while (j < 3 && left[j] <= k) k -= left[j++];\n"
    "        wanted |= (U)j << digit, known |= (U)3 << digit;\n"
    "    }\n"
    "    for (int i = threadIdx.x; i < n; i += blockDim.x)\n"
    "        if ((op_order((T)x[i * inner]) & known) == wanted) atomicMin(&found, i);\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x == 0) y0[row] = x[found * inner], y1[row] = found;\n";

static int plain(const OpCall *c, OpPlain *out, Error *err)
{
    const OpTensor *x = op_tensor(c, 0);
    char name[24], place[48], operands[160];
    Buffer *b = out->source;
    Select s;
    snprintf(name, sizeof name, "x%lld", (long long)c->arg[0].integer[0]);
    if (select_of(c, &s, err) || text_dense(out, c, name, x, place, sizeof place, err)) return -1;
    int threads = s.n > SELECT_THREADS ? SELECT_THREADS : (int)(s.n + 31) / 32 * 32;
    snprintf(operands, sizeof operands, "%.*s y0 y1 n=%lld inner:%lld", (int)strcspn(place, " "),
             place, (long long)s.n, (long long)s.inner);
    buffer_puts(b, order_text);
    if (!text_begin(out, c, "select", operands, s.rows, threads, err)) return -1;
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
        buffer_puts(
            b, "    int nans = 0;\n"
               "    for (int i = threadIdx.x; i < (n + (int)blockDim.x - 1) / (int)blockDim.x * "
               "(int)blockDim.x; i += blockDim.x)\n"
               "        nans += __syncthreads_count(i < n && (T)x[i * inner] != (T)x[i * inner]);\n"
               "    if (nans) k = n - 1;\n");
    buffer_puts(b, select_text);
    return text_end(out, err);
}

static const Op table[] = {
    {"aten.median.dim", "Tensor self, int dim, bool keepdim=False", infer, reference, plain,
     op_cost_elements, 0, NULL, NULL},
    {"aten.kthvalue.default", "Tensor self, int k, int dim=-1, bool keepdim=False", infer,
     reference, plain, op_cost_elements, 0, NULL, NULL},
};

OpFamily select_family(void)
{
    return (OpFamily){"select", table, (int)(sizeof table / sizeof *table)};
}
