/* Whole results by their definitions, of factors rounded to TF32 where it is allowed: only small workloads
 * are computed. */
#include "eval/sim/library/library_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/library/library_elements.h"
#include "eval/sim/library/library_shape.h"

/* Host work in thread-instructions, of which a simulator runs 1.2e9 to 1.5e9 a second. Convolutions cost four
 * times as much until 2026-11-30: those of k3_12 and k3_19 ran 1e10 a second. */
static const double RESULT_COST = 20, PRODUCT_COST = 3, TAP_COST = 0.5, CHANNEL_COST = 2,
                    FIND_COST = 1, WIDEN_COST = 2, MAX_COUNTED = 1 << 16;

typedef struct {
    const char *name; /* for messages */
    uint64_t p;
    int64_t n; /* elements */
    int dtype, result;
} Operand;

/* The elements of an operand of a call, which is written or read. */
static int operand(DevMem *m, const char *call, const Operand *o, Elements *out, Error *err)
{
    uint64_t size = o->dtype == DTYPE_F32 ? 4 : 2, bytes = size * (uint64_t)o->n;
    int at = devmem_find(m, o->p);
    const Alloc *a = at >= 0 ? &m->allocs[at] : NULL;
    if (!a || o->p % size || o->n < 0 || bytes > a->bytes - (o->p - a->base))
        return error_set(err, ERROR_INVALID, "%s of %s is no buffer of %lld elements", o->name,
                         call, (long long)o->n);
    uint64_t lo = o->p - ARENA_BASE, hi = lo + bytes;
    if (o->result && a->read_only)
        return error_set(err, ERROR_INVALID, "%s writes to %s, which is read-only", call, a->label);
    if (o->result)
        devmem_set_written(m, o->p, bytes);
    else if (!a->all_written && !devmem_is_written(m, lo, hi) && devmem_supply(m, a, lo, hi))
        return error_set(err, ERROR_INVALID, "%s reads values of %s that nothing wrote", call,
                         a->label);
    *out = (Elements){devmem_host(m, o->p), o->dtype, 0};
    return 0;
}

/* Elements from the first of a batch of matrices to the last one's last. */
static int64_t extent(int64_t batch, int64_t apart, int64_t rows, int64_t leading, int64_t row)
{
    return (batch - 1) * apart + (rows - 1) * leading + row;
}

/* The elements of a matrix of each entry of a batch. */
typedef struct {
    Elements e;
    int64_t apart, row, column; /* steps in elements */
} Matrices;

/* The matrix of an entry as floats in C order, which hold every value of its dtype. */
static void widen_matrix(const Matrices *x, int64_t entry, int64_t rows, int64_t columns,
                         float *out)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            *out++ = (float)element_get(&x->e, entry * x->apart + i * x->row + j * x->column);
}

/* Products of a row's elements with all columns: a sum has its terms in their order. */
static void multiply_row(const LibraryProduct *p, const float *a, const float *b, double *sum)
{
    const int64_t n = p->n;
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int64_t j = 0; j < p->k; j++, b += n) {
        const double x = (double)a[j];
#pragma omp simd
        for (int64_t i = 0; i < n; i++) sum[i] += x * (double)b[i];
    }
}

static void multiply(const LibraryProduct *p, const Matrices *a, const Matrices *b,
                     const Elements *bias, const Elements *c)
{
    float *left = memory_array((size_t)(p->m * p->k) + 1, sizeof *left),
          *right = memory_array((size_t)(p->k * p->n) + 1, sizeof *right);
    double *sum = memory_array((size_t)p->n + 1, sizeof *sum);
    for (int64_t entry = 0; entry < p->batch; entry++) {
        widen_matrix(a, entry, p->m, p->k, left);
        widen_matrix(b, entry, p->k, p->n, right);
        for (int64_t row = 0; row < p->m; row++) {
            multiply_row(p, left + row * p->k, right, sum);
            for (int64_t i = 0; i < p->n; i++) {
                double v = sum[i] * p->alpha;
                if (bias->p) v += element_get(bias, i);
                element_put(c, entry * p->apart_c + row * p->ldc + i, p->relu && v < 0 ? 0 : v);
            }
        }
    }
    free(left), free(right), free(sum);
}

static int run_product(DevMem *m, const char *call, const LibraryProduct *p, Error *err)
{
    Elements c, bias = {NULL, 0, 0};
    int ta = p->transpose_a, tb = p->transpose_b;
    Matrices a = {{NULL, 0, 0}, p->apart_a, ta ? 1 : p->lda, ta ? p->lda : 1},
             b = {{NULL, 0, 0}, p->apart_b, tb ? 1 : p->ldb, tb ? p->ldb : 1};
    Operand of_a = {"a", p->a,
                    extent(p->batch, p->apart_a, ta ? p->k : p->m, p->lda, ta ? p->m : p->k),
                    p->dtype, 0},
            of_b = {"b", p->b,
                    extent(p->batch, p->apart_b, tb ? p->n : p->k, p->ldb, tb ? p->k : p->n),
                    p->dtype, 0},
            of_bias = {"the bias", p->bias, p->n, p->dtype, 0},
            of_c = {"c", p->c, extent(p->batch, p->apart_c, p->m, p->ldc, p->n), p->c_dtype, 1};
    if (operand(m, call, &of_a, &a.e, err) || operand(m, call, &of_b, &b.e, err) ||
        (p->bias && operand(m, call, &of_bias, &bias, err)) || operand(m, call, &of_c, &c, err))
        return -1;
    a.e.tf32 = b.e.tf32 = p->tf32;
    multiply(p, &a, &b, &bias, &c);
    return 0;
}

/* The outputs along a dimension that a tap meets, and their inputs: both lie evenly apart. */
typedef struct {
    int64_t out, out_step, input, input_step, n;
} TapRun;

/* x is in C order, also where channels lie last. */
typedef struct {
    const LibraryConvolution *c;
    LibrarySteps of_weight, of_y;
    float *x, *weight;
    TapRun *taps[3];
    double *sum; /* of a channel's outputs */
    Elements y;
} Convolution;

static TapRun *tap_runs(const LibraryConvolution *c, int d)
{
    TapRun *runs = memory_array((size_t)c->d[d].kernel + 1, sizeof *runs);
    for (int64_t k = 0; k < c->d[d].kernel; k++)
        for (int64_t o = 0; o < c->d[d].out; o++) {
            TapRun *r = &runs[k];
            int64_t input = tap_input(c, d, o, k);
            if (input < 0) continue;
            if (!r->n) r->out = o, r->input = input;
            if (r->n++ == 1) r->out_step = o - r->out, r->input_step = input - r->input;
        }
    return runs;
}

/* Adds the products of a tap to all outputs that it meets. */
static void add_tap(const Convolution *v, const TapRun t[3], const float *x, double weight)
{
    const LibraryConvolution *c = v->c;
    for (int64_t i = 0; i < t[0].n; i++)
        for (int64_t j = 0; j < t[1].n; j++) {
            int64_t from = (t[0].input + i * t[0].input_step) * c->d[1].in + t[1].input +
                           j * t[1].input_step,
                    to =
                        (t[0].out + i * t[0].out_step) * c->d[1].out + t[1].out + j * t[1].out_step;
            const float *row = x + from * c->d[2].in + t[2].input;
            double *sum = v->sum + to * c->d[2].out + t[2].out;
            if (t[2].out_step == 1 && t[2].input_step == 1) {
#pragma omp simd
                for (int64_t k = 0; k < t[2].n; k++) sum[k] += (double)row[k] * weight;
            } else {
                for (int64_t k = 0; k < t[2].n; k++)
                    sum[k * t[2].out_step] += (double)row[k * t[2].input_step] * weight;
            }
        }
}

/* Adds what one channel of the input adds to each output: a sum has its terms in the order of the taps. */
static void add_channel(const Convolution *v, const float *x, const float *weight)
{
    const LibraryConvolution *c = v->c;
    for (int64_t i = 0; i < c->d[0].kernel; i++)
        for (int64_t j = 0; j < c->d[1].kernel; j++)
            for (int64_t k = 0; k < c->d[2].kernel; k++) {
                const TapRun t[3] = {v->taps[0][i], v->taps[1][j], v->taps[2][k]};
                int64_t at = (i * c->d[1].kernel + j) * c->d[2].kernel + k;
                add_tap(v, t, x, (double)weight[at * v->of_weight.place]);
            }
}

/* The outputs of channel `out` of the batch's entry. */
static void convolve(Convolution *v, int64_t entry, int64_t out)
{
    const LibraryConvolution *c = v->c;
    int64_t in = c->in / c->groups, group = out / (c->out / c->groups),
            n = c->d[0].out * c->d[1].out * c->d[2].out,
            at = entry * v->of_y.entry + out * v->of_y.channel;
    memset(v->sum, 0, (size_t)n * sizeof *v->sum);
    for (int64_t i = group * in; i < (group + 1) * in; i++)
        add_channel(v, v->x + (entry * c->in + i) * convolution_plane(c),
                    v->weight + weight_pair(c, &v->of_weight, i, out));
    for (int64_t k = 0; k < n; k++) element_put(&v->y, at + k * v->of_y.place, v->sum[k]);
}

/* As floats, which hold every value of the operand's dtype. */
static float *widened(const Elements *e, int64_t n)
{
    float *out = memory_array((size_t)n + 1, sizeof *out);
    for (int64_t i = 0; i < n; i++) out[i] = (float)element_get(e, i);
    return out;
}

/* The same, with channels before places. */
static float *widened_input(const LibraryConvolution *c, const Elements *x)
{
    int64_t plane = convolution_plane(c), n = c->batch * c->in * plane, at = 0;
    const LibrarySteps of = x_steps(c);
    float *out = memory_array((size_t)n + 1, sizeof *out);
    for (int64_t i = 0; i < c->batch * c->in; i++)
        for (int64_t k = 0; k < plane; k++)
            out[at++] =
                (float)element_get(x, i / c->in * of.entry + i % c->in * of.channel + k * of.place);
    return out;
}

static int run_convolution(DevMem *m, const char *call, const LibraryConvolution *c, Error *err)
{
    Elements x, weight;
    int64_t places = c->d[0].out * c->d[1].out * c->d[2].out;
    Convolution v = {.c = c, .of_weight = weight_steps(c), .of_y = steps_of(c, c->out, places)};
    int64_t in = c->batch * c->in * convolution_plane(c), out = c->batch * c->out * places,
            weights = c->in * (c->out / c->groups) * convolution_kernel(c);
    if (operand(m, call, &(Operand){"x", c->x, in, c->dtype, 0}, &x, err) ||
        operand(m, call, &(Operand){"the weight", c->weight, weights, c->dtype, 0}, &weight, err) ||
        operand(m, call, &(Operand){"y", c->y, out, c->dtype, 1}, &v.y, err))
        return -1;
    x.tf32 = weight.tf32 = (int)c->tf32;
    v.x = widened_input(c, &x);
    v.weight = widened(&weight, weights);
    v.sum = memory_array((size_t)places + 1, sizeof *v.sum);
    for (int d = 0; d < 3; d++) v.taps[d] = tap_runs(c, d);
    for (int64_t i = 0; i < c->batch * c->out; i++) convolve(&v, i / c->out, i % c->out);
    for (int d = 0; d < 3; d++) free(v.taps[d]);
    free(v.x), free(v.weight), free(v.sum);
    return 0;
}

int library_run(DevMem *m, const DeviceLaunch *call, Error *err)
{
    LibraryCall c;
    if (library_read(call, &c, err)) return -1;
    return c.kind == LIBRARY_PRODUCT ? run_product(m, call->kernel, &c.product, err)
                                     : run_convolution(m, call->kernel, &c.convolution, err);
}

/* Pairs of output and tap that meet an input; where they are many to count, all pairs. */
static double pairs_of(const LibraryConvolution *c, int d)
{
    double all = (double)c->d[d].out * (double)c->d[d].kernel, n = 0;
    if (all > MAX_COUNTED) return all;
    for (int64_t o = 0; o < c->d[d].out; o++)
        for (int64_t k = 0; k < c->d[d].kernel; k++) n += tap_input(c, d, o, k) >= 0;
    return n;
}

static double convolution_cost(const LibraryConvolution *c)
{
    double channels = (double)c->batch * (double)c->out, in = (double)c->in / (double)c->groups,
           pairs = channels * in, outs = channels, x = (double)c->batch * (double)c->in,
           weights = (double)c->out * in;
    for (int d = 0; d < 3; d++) {
        pairs *= pairs_of(c, d);
        outs *= (double)c->d[d].out;
        x *= (double)c->d[d].in;
        weights *= (double)c->d[d].kernel;
    }
    return TAP_COST * pairs + WIDEN_COST * (x + weights) +
           outs * (RESULT_COST + CHANNEL_COST * in + FIND_COST * (double)c->d[2].kernel);
}

int64_t library_run_cost(const DeviceLaunch *call)
{
    LibraryCall c;
    const LibraryProduct *p = &c.product;
    if (library_read(call, &c, NULL)) return 0;
    double cost = c.kind == LIBRARY_CONVOLUTION ? convolution_cost(&c.convolution)
                                                : (double)p->batch * (double)p->m * (double)p->n *
                                                      (RESULT_COST + PRODUCT_COST * (double)p->k);
    return cost < 1e15 ? (int64_t)cost : (int64_t)1e15;
}
