/* Products and convolutions by their definitions: only small workloads are computed. */
#include "eval/sim/library/library_run.h"

#include <string.h>

#include "eval/sim/library/library_shape.h"

/* The operand of n floats at argument i of the call. */
static float *operand(DevMem *m, const DeviceLaunch *call, int i, double n, int result, Error *err)
{
    uint64_t p;
    memcpy(&p, call->params + 8 * i, 8);
    int at = devmem_find(m, p);
    const Alloc *a = at >= 0 ? &m->allocs[at] : NULL;
    if (!a || p % 4 || n * 4 > (double)(a->bytes - (p - a->base))) {
        error_set(err, ERROR_INVALID, "argument %d of %s is no buffer of %.0f floats", i + 1,
                  call->kernel, n);
        return NULL;
    }
    uint64_t lo = p - ARENA_BASE, hi = lo + 4 * (uint64_t)n;
    if (result && a->read_only) {
        error_set(err, ERROR_INVALID, "%s writes to %s, which is read-only", call->kernel,
                  a->label);
        return NULL;
    }
    if (result) {
        devmem_set_written(m, p, 4 * (size_t)n);
    } else if (!a->all_written && !devmem_is_written(m, lo, hi) && devmem_supply(m, a, lo, hi)) {
        error_set(err, ERROR_INVALID, "%s reads values of %s that nothing wrote", call->kernel,
                  a->label);
        return NULL;
    }
    return (float *)devmem_host(m, p);
}

typedef struct {
    const float *a, *b, *bias;
    float *c;
    size_t batch, m, n, k;
    int transpose_a, transpose_b;
    double alpha;
} Product;

static void product(const Product *p)
{
    for (size_t i = 0; i < p->batch * p->m; i++)
        for (size_t column = 0; column < p->n; column++) {
            size_t batch = i / p->m, row = i % p->m;
            const float *a = p->a + batch * p->m * p->k, *b = p->b + batch * p->k * p->n;
            double sum = 0;
            for (size_t j = 0; j < p->k; j++)
                sum += (double)(p->transpose_a ? a[j * p->m + row] : a[row * p->k + j]) *
                       (double)(p->transpose_b ? b[column * p->k + j] : b[j * p->n + column]);
            sum *= p->alpha;
            if (p->bias) sum = sum + p->bias[column] > 0 ? sum + p->bias[column] : 0;
            p->c[i * p->n + column] = (float)sum;
        }
}

static int run_product(DevMem *m, const DeviceLaunch *call, const LibraryShape *s, Error *err)
{
    LibraryWork w = library_work(s);
    int has_bias = !strcmp(call->kernel, "cublaslt.sgemm_bias_relu");
    Product p = {.batch = (size_t)w.groups,
                 .m = (size_t)w.m,
                 .n = (size_t)w.n,
                 .k = (size_t)w.k,
                 .transpose_b = s->size[4] != 0,
                 .alpha = 1};
    if (!strcmp(call->kernel, "cublas.sgemm_batched")) {
        p.transpose_a = call->params[7 * 8] != 0;
        memcpy(&p.alpha, call->params + 9 * 8, 8);
    }
    p.a = operand(m, call, 0, w.in, 0, err);
    p.b = p.a ? operand(m, call, 1, w.weights, 0, err) : NULL;
    if (p.b && has_bias && !(p.bias = operand(m, call, 2, w.n, 0, err))) return -1;
    p.c = p.b ? operand(m, call, 2 + has_bias, w.out, 1, err) : NULL;
    if (!p.c) return -1;
    product(&p);
    return 0;
}

/* One element of a convolution over three dimensions, without groups. */
static double convolved(const float *x, const float *weight, const int64_t v[12],
                        const int64_t at[3])
{
    double sum = 0;
    for (int64_t c = 0; c < v[1]; c++)
        for (int64_t i = 0; i < v[6] * v[7] * v[8]; i++) {
            int64_t k[3] = {i / (v[7] * v[8]), i / v[8] % v[7], i % v[8]}, offset = c;
            int inside = 1;
            for (int d = 0; d < 3; d++) {
                int64_t from = at[d] * v[9] - v[10] + k[d];
                inside &= from >= 0 && from < v[3 + d];
                offset = offset * v[3 + d] + from;
            }
            if (inside) sum += (double)x[offset] * weight[c * v[6] * v[7] * v[8] + i];
        }
    return sum;
}

static int run_convolution(DevMem *m, const DeviceLaunch *call, const LibraryShape *s, Error *err)
{
    LibraryWork w = library_work(s);
    int64_t v[12], size[3], volume = 1;
    for (int i = 0; i < 12; i++) v[i] = (int64_t)s->size[i];
    for (int i = 0; i < 3; i++) {
        size[i] = (v[3 + i] + 2 * v[10] - v[6 + i]) / v[9] + 1;
        if (v[3 + i] + 2 * v[10] < v[6 + i])
            return error_set(err, ERROR_INVALID, "%s: the kernel is larger than its input",
                             call->kernel);
        volume *= size[i];
    }
    const float *x = operand(m, call, 0, w.in, 0, err);
    const float *weight = x ? operand(m, call, 1, w.weights, 0, err) : NULL;
    float *y = weight ? operand(m, call, 2, w.out, 1, err) : NULL;
    if (!y) return -1;
    for (int64_t i = 0; i < v[0] * v[2] * volume; i++) {
        int64_t batch = i / volume / v[2], out = i / volume % v[2], j = i % volume;
        int64_t at[3] = {j / (size[1] * size[2]), j / size[2] % size[1], j % size[2]};
        y[i] = (float)convolved(x + batch * v[1] * v[3] * v[4] * v[5],
                                weight + out * v[1] * v[6] * v[7] * v[8], v, at);
    }
    return 0;
}

int library_run(DevMem *m, const DeviceLaunch *call, Error *err)
{
    LibraryShape s;
    if (library_shape(call, &s, err)) return -1;
    return s.op == LIBRARY_GEMM ? run_product(m, call, &s, err) : run_convolution(m, call, &s, err);
}
