/* Whole results by their definitions, of factors rounded to TF32 where it is allowed: only small workloads
 * are computed. */
#include "eval/sim/library/library_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/sim/library/library_elements.h"
#include "eval/sim/library/library_shape.h"
#include "tasks/derive/tf32.h"

/* Host work in thread-instructions. */
static const double RESULT_COST = 20, PRODUCT_COST = 3, TAP_COST = 2, CHANNEL_COST = 8,
                    FIND_COST = 4, WIDEN_COST = 2, MAX_COUNTED = 1 << 16;

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

static int run_product(DevMem *m, const char *call, const LibraryProduct *p, Error *err)
{
    Elements a, b, c, bias = {NULL, 0, 0};
    int ta = p->transpose_a, tb = p->transpose_b;
    Operand of_a = {"a", p->a,
                    extent(p->batch, p->apart_a, ta ? p->k : p->m, p->lda, ta ? p->m : p->k),
                    p->dtype, 0},
            of_b = {"b", p->b,
                    extent(p->batch, p->apart_b, tb ? p->n : p->k, p->ldb, tb ? p->k : p->n),
                    p->dtype, 0},
            of_bias = {"the bias", p->bias, p->n, p->dtype, 0},
            of_c = {"c", p->c, extent(p->batch, p->apart_c, p->m, p->ldc, p->n), p->c_dtype, 1};
    if (operand(m, call, &of_a, &a, err) || operand(m, call, &of_b, &b, err) ||
        (p->bias && operand(m, call, &of_bias, &bias, err)) || operand(m, call, &of_c, &c, err))
        return -1;
    a.tf32 = b.tf32 = p->tf32;
    for (int64_t i = 0; i < p->batch * p->m; i++)
        for (int64_t column = 0; column < p->n; column++) {
            int64_t batch = i / p->m, row = i % p->m;
            double sum = 0;
            for (int64_t j = 0; j < p->k; j++)
                sum += element_get(&a, batch * p->apart_a +
                                           (ta ? j * p->lda + row : row * p->lda + j)) *
                       element_get(&b, batch * p->apart_b +
                                           (tb ? column * p->ldb + j : j * p->ldb + column));
            sum *= p->alpha;
            if (bias.p) sum += element_get(&bias, column);
            element_put(&c, batch * p->apart_c + row * p->ldc + column,
                        p->relu && sum < 0 ? 0 : sum);
        }
    return 0;
}

typedef struct {
    const LibraryConvolution *c;
    LibrarySteps of_x, of_weight, of_y;
    float *x, *weight;
    Taps taps[3];
    Elements y;
} Convolution;

/* What one channel of the input adds to an output, in the order of the taps. */
static double add_channel(const Convolution *v, const float *x, const float *weight, double sum)
{
    const LibraryConvolution *c = v->c;
    const Taps *t = v->taps;
    const int64_t by_x = v->of_x.place, by_tap = v->of_weight.place;
    for (int64_t i = 0; i < t[0].n; i++)
        for (int64_t j = 0; j < t[1].n; j++) {
            const float *row = x + (t[0].input[i] * c->d[1].in + t[1].input[j]) * c->d[2].in * by_x;
            const float *taps =
                weight + (t[0].tap[i] * c->d[1].kernel + t[1].tap[j]) * c->d[2].kernel * by_tap;
            for (int64_t k = 0; k < t[2].n; k++)
                sum += (double)row[t[2].input[k] * by_x] * (double)taps[t[2].tap[k] * by_tap];
        }
    return sum;
}

/* The outputs of channel `out` of the batch's entry. */
static void convolve(Convolution *v, int64_t entry, int64_t out)
{
    const LibraryConvolution *c = v->c;
    Taps *t = v->taps;
    int64_t in = c->in / c->groups, group = out / (c->out / c->groups), o[3],
            at = entry * v->of_y.entry + out * v->of_y.channel;
    for (o[0] = 0; o[0] < c->d[0].out; o[0]++) {
        taps_find(c, 0, o[0], &t[0]);
        for (o[1] = 0; o[1] < c->d[1].out; o[1]++) {
            taps_find(c, 1, o[1], &t[1]);
            for (o[2] = 0; o[2] < c->d[2].out; o[2]++) {
                double sum = 0;
                taps_find(c, 2, o[2], &t[2]);
                for (int64_t i = group * in; i < (group + 1) * in; i++)
                    sum = add_channel(v, v->x + entry * v->of_x.entry + i * v->of_x.channel,
                                      v->weight + weight_pair(c, &v->of_weight, i, out), sum);
                element_put(&v->y, at, sum);
                at += v->of_y.place;
            }
        }
    }
}

/* As floats, which hold every value of the operand's dtype. */
static float *widened(const Elements *e, int64_t n)
{
    float *out = memory_array((size_t)n + 1, sizeof *out);
    for (int64_t i = 0; i < n; i++) out[i] = (float)element_get(e, i);
    return out;
}

static int run_convolution(DevMem *m, const char *call, const LibraryConvolution *c, Error *err)
{
    Elements x, weight;
    Convolution v = {
        .c = c,
        .of_x = x_steps(c),
        .of_weight = weight_steps(c),
        .of_y = steps_of(c, c->out, c->d[0].out * c->d[1].out * c->d[2].out),
    };
    int64_t in = c->batch * c->in, out = c->batch * c->out, weights = c->in * (c->out / c->groups);
    for (int d = 0; d < 3; d++) in *= c->d[d].in, out *= c->d[d].out, weights *= c->d[d].kernel;
    if (operand(m, call, &(Operand){"x", c->x, in, c->dtype, 0}, &x, err) ||
        operand(m, call, &(Operand){"the weight", c->weight, weights, c->dtype, 0}, &weight, err) ||
        operand(m, call, &(Operand){"y", c->y, out, c->dtype, 1}, &v.y, err))
        return -1;
    x.tf32 = weight.tf32 = (int)c->tf32;
    v.x = widened(&x, in);
    v.weight = widened(&weight, weights);
    for (int d = 0; d < 3; d++) {
        v.taps[d].tap = memory_array((size_t)c->d[d].kernel + 1, sizeof *v.taps[d].tap);
        v.taps[d].input = memory_array((size_t)c->d[d].kernel + 1, sizeof *v.taps[d].input);
    }
    for (int64_t i = 0; i < c->batch * c->out; i++) convolve(&v, i / c->out, i % c->out);
    for (int d = 0; d < 3; d++) {
        free(v.taps[d].tap);
        free(v.taps[d].input);
    }
    free(v.x);
    free(v.weight);
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
