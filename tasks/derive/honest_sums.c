/* Row reductions and cumulative sums in float32: in each order of summation, with and without FMA, by the
 * two usual formulas. */
#include "tasks/derive/honest_sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ops/op_reduction.h"
#include "ops/row/op_fft.h"
#include "ops/row/op_norm.h"
#include "ops/row/op_softmax.h"
#include "tasks/derive/honest.h"

static float add_square(float sum, float a, const Way *way)
{
    if (way->fma) return fmaf(a, a, sum);
    volatile float square = a * a; /* a rounding of its own, whatever the compiler contracts */
    return sum + square;
}

static float halves(const float *a, int64_t n, int squares)
{
    if (n == 1) return squares ? a[0] * a[0] : a[0];
    return halves(a, n / 2, squares) + halves(a + n / 2, n - n / 2, squares);
}

static float sum(const float *a, int64_t n, int squares, const Way *way);

/* One running sum of HONEST_DRIFT_MAX terms, which are sums themselves, as of blocks by atomic operations. */
static float running_blocks(const float *a, int64_t n, int squares, const Way *way)
{
    int64_t each = (n + HONEST_DRIFT_MAX - 1) / HONEST_DRIFT_MAX;
    float all = 0;
    for (int64_t i = 0; i < n; i += each)
        all += sum(a + i, each < n - i ? each : n - i, squares, way);
    return all;
}

/* The sum of a[i], or of its squares. */
static float sum(const float *a, int64_t n, int squares, const Way *way)
{
    static const int lanes[ORDERS] = {1, 1, 32, 256}; /* powers of two: & takes the place of % */
    float lane[256] = {0};
    int width = lanes[way->order], mask = width - 1;
    if (n < 1) return 0;
    if (way->order == HALVES) return halves(a, n, squares);
    if (way->order == RUNNING && n > HONEST_DRIFT_MAX) return running_blocks(a, n, squares, way);
    for (int64_t i = 0; i < n; i++)
        lane[i & mask] = squares ? add_square(lane[i & mask], a[i], way) : lane[i & mask] + a[i];
    for (int half = width / 2; half; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

/* ---- reductions ---- */

static int64_t place(int rank, const int64_t *size, const int64_t *step, int64_t flat)
{
    int64_t at = 0;
    for (int d = rank - 1; d >= 0; flat /= size[d--]) at += flat % size[d] * step[d];
    return at;
}

/* The places of all elements in order, without a division for each. */
static void places(int rank, const int64_t *size, const int64_t *step, int64_t *at)
{
    int64_t done = 1;
    at[0] = 0;
    for (int d = rank - 1; d >= 0; done *= size[d--])
        for (int64_t k = 1; k < size[d]; k++)
            for (int64_t i = 0; i < done; i++) at[k * done + i] = at[i] + k * step[d];
}

/* The mean squared distance, by two passes or by the mean of squares. */
static float variance(float *row, int64_t n, double less, const Way *way)
{
    float count = (float)n, mean = sum(row, n, 0, way) / count, squares;
    float divisor = (float)((double)n - less);
    if (way->approximate && !way->two_passes) {
        squares = sum(row, n, 1, way) - count * mean * mean;
        return fmaxf(squares, 0) / divisor;
    }
    for (int64_t i = 0; i < n; i++) row[i] -= mean;
    return sum(row, n, 1, way) / divisor;
}

static double reduced(const Reduction *r, float *row, const Way *way)
{
    int64_t n = r->inputs;
    switch (r->kind) {
    case REDUCE_SUM: return (double)sum(row, n, 0, way);
    case REDUCE_MEAN: return (double)(sum(row, n, 0, way) / (float)n);
    case REDUCE_NORM: return (double)sqrtf(sum(row, n, 1, way));
    case REDUCE_VAR: return (double)variance(row, n, r->order, way);
    default: return (double)sqrtf(variance(row, n, r->order, way));
    }
}

static int is_sum(const Reduction *r)
{
    return r->kind == REDUCE_SUM || r->kind == REDUCE_MEAN || r->kind == REDUCE_VAR ||
           r->kind == REDUCE_STD || (r->kind == REDUCE_NORM && r->order == 2);
}

static int reduction(const GraphCall *c, const Way *way, const double *const *in,
                     double *const *out)
{
    Reduction r;
    if (reduction_of(&c->call, 1, &r, NULL) || !is_sum(&r) || r.inputs < 1 ||
        !dtype_is_float(c->call.tensor[0].dtype))
        return 0;
    float *row = memory_array((size_t)r.inputs, sizeof *row);
    int64_t *at = memory_array((size_t)r.inputs, sizeof *at); /* the same in each row */
    places(r.reduced, r.reduced_size, r.reduced_step, at);
    for (int64_t o = 0; o < r.outputs; o++) {
        const double *x = in[0] + place(r.kept, r.kept_size, r.kept_step, o);
        for (int64_t i = 0; i < r.inputs; i++) row[i] = (float)x[at[i]];
        out[0][o] = reduced(&r, row, way);
    }
    free(row);
    free(at);
    return 1;
}

/* ---- normalisations ---- */

/* How rows are normalised. */
typedef struct {
    const Norm *m;
    const Way *way;
    const int64_t *at; /* where the elements are, after a row's first one */
    float *row, *copy; /* memory for them */
} Rows;

static void norm_row(const Rows *of, const double *const *in, int64_t r, double *y)
{
    const Norm *m = of->m;
    const Way *way = of->way;
    const int64_t *at = of->at;
    float *row = of->row, *copy = of->copy;
    float mean = 0, var;
    for (int64_t i = 0; i < m->n; i++)
        row[i] = copy[i] = (float)in[m->x_index][r * m->inner + at[i]];
    if (!m->own) {
        mean = (float)in[m->mean_index][r], var = (float)in[m->var_index][r];
    } else if (m->kind == NORM_RMS) {
        var = sum(row, m->n, 1, way) / (float)m->n;
    } else {
        mean = sum(row, m->n, 0, way) / (float)m->n;
        var = variance(copy, m->n, 0, way);
    }
    float root = sqrtf(var + (float)m->eps), inverse = 1 / root;
    int64_t first = 0, end = 0, j = 0; /* the elements of channel j around f */
    for (int64_t i = 0; i < m->n; i++) {
        int64_t f = r * m->inner + at[i];
        if (f < first || f >= end) {
            first = f - f % m->spread, end = first + m->spread;
            j = first / m->spread % m->channels;
        }
        float w = m->weight ? (float)in[m->weight_index][j] : 1,
              b = m->bias ? (float)in[m->bias_index][j] : 0, v;
        if (way->approximate && way->fma) { /* x * scale + shift */
            float scale = w * inverse, shift = fmaf(-mean, scale, b);
            v = fmaf(row[i], scale, shift);
        } else {
            volatile float unit =
                way->approximate ? (row[i] - mean) * inverse : (row[i] - mean) / root;
            volatile float product = unit * w;
            v = way->fma ? fmaf(unit, w, b) : product + b;
        }
        y[f] = (double)v;
    }
}

static int norm(const GraphCall *c, const Way *way, const double *const *in, double *const *out)
{
    Norm m;
    if (norm_of(&c->call, &m, NULL) || m.results != NORM_ONE) return 0;
    float *row = memory_array((size_t)m.n + 1, sizeof *row),
          *copy = memory_array((size_t)m.n + 1, sizeof *copy);
    int64_t *at = memory_array((size_t)m.n + 1, sizeof *at);
    for (int64_t i = 0; i < m.n; i++) at[i] = i / m.inner * (m.rows * m.inner) + i % m.inner;
    const Rows of = {&m, way, at, row, copy};
    for (int64_t r = 0; r < m.rows; r++) norm_row(&of, in, r, out[0]);
    free(row);
    free(copy);
    free(at);
    return 1;
}

/* ---- softmax ---- */

static float exponential(float x, const Way *way)
{
    return way->approximate ? exp2f(x * 1.44269504f) : expf(x);
}

static void softmax_row(const Softmax *s, const Way *way, const double *x, double *y, float *row)
{
    float largest = -INFINITY;
    for (int64_t i = 0; i < s->n; i++) largest = fmaxf(largest, (float)x[i * s->inner]);
    for (int64_t i = 0; i < s->n; i++) row[i] = exponential((float)x[i * s->inner] - largest, way);
    float total = sum(row, s->n, 0, way), inverse = 1 / total, log_total = logf(total);
    for (int64_t i = 0; i < s->n; i++) {
        float v = way->approximate ? row[i] * inverse : row[i] / total;
        if (s->logarithm) v = (float)x[i * s->inner] - largest - log_total;
        y[i * s->inner] = (double)v;
    }
}

static int softmax(const GraphCall *c, const Way *way, const double *const *in, double *const *out)
{
    Softmax s;
    if (softmax_of(&c->call, &s, NULL)) return 0;
    float *row = memory_array((size_t)s.n + 1, sizeof *row);
    for (int64_t r = 0; r < s.rows; r++) {
        int64_t first = r / s.inner * s.n * s.inner + r % s.inner;
        softmax_row(&s, way, in[0] + first, out[0] + first, row);
    }
    free(row);
    return 1;
}

/* ---- cumulative sums ---- */

/* Runs of `width` elements, each added to the sum of those before it; 1: one running sum. */
static void cumulative(const double *x, double *y, int64_t n, int64_t inner, int width)
{
    float before = 0, run = 0;
    for (int64_t i = 0; i < n; i++) {
        run += (float)x[i * inner];
        y[i * inner] = (double)(before + run);
        if (width > 1 && (i + 1) % width == 0) before += run, run = 0;
    }
}

static int cumsum(const GraphCall *c, const Way *way, const double *const *in, double *const *out)
{
    static const int widths[ORDERS] = {1, 8, 32, 256};
    const OpTensor *x = &c->call.tensor[0];
    int64_t n = 1, inner = 1;
    int dim;
    if (op_dim(c->call.arg[1].integer[0], x->rank, &dim, NULL)) return 0;
    for (int d = dim + 1; d < x->rank; d++) inner *= x->size[d];
    if (x->rank) n = x->size[dim];
    for (int64_t r = 0; n && r < op_elements(x) / n; r++) {
        int64_t first = r / inner * n * inner + r % inner;
        cumulative(in[0] + first, out[0] + first, n, inner, widths[way->order]);
    }
    return 1;
}

/* ---- Fourier transforms ---- */

enum { TRANSFORM_PRODUCTS = 1 << 21 };

/* One running sum for each element, as a kernel without stages has it. */
static int transform(const GraphCall *c, const Way *way, const double *const *in,
                     double *const *out)
{
    if (way->order || c->call.op->reference(&c->call, in, out, NULL)) return 0;
    fft_direct(&c->call, in[0], out[0], TRANSFORM_PRODUCTS);
    return 1;
}

/* ---- all ---- */

int honest_norm(const OpCall *c)
{
    Norm m;
    return op_is_of(c->op, &norm_family) && !norm_of(c, &m, NULL) && m.results == NORM_ONE;
}

int honest_sums(const GraphCall *c, const Way *way, const double *const *in, double *const *out)
{
    if (op_is_of(c->call.op, &reduction_family)) return reduction(c, way, in, out);
    if (op_is_of(c->call.op, &norm_family)) return norm(c, way, in, out);
    if (op_is_of(c->call.op, &softmax_family) && c->call.n_results == 1 && c->call.n_tensors == 1 &&
        op_elements(&c->call.result[0]) == op_elements(&c->call.tensor[0]))
        return softmax(c, way, in, out);
    if (op_is_of(c->call.op, &fft_family)) return transform(c, way, in, out);
    if (!strcmp(c->call.op->name, "aten.cumsum.default")) return cumsum(c, way, in, out);
    return 0;
}
