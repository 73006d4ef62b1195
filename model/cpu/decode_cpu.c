/* Kernels of decoding on the CPU: products of few rows with packed weights, and attention over a KV
 * store. Every output is one chain of fused multiply-adds in a fixed order, so that the bits of a
 * row do not depend on the other rows. A general sgemm changes its kernel with the shape. */
#include <math.h>

#include "model/cpu/cpu_kernels.h"
#include "model/cpu/simd.h"

/* Accumulators of a product: 16 of the 32 registers of AVX-512, or 12 of the 16 registers
 * otherwise. */
enum { PANEL = 2 * LANES, ROWS = LANES == 16 ? 8 : 6 };

void cpu_pack(Packed *p, const Num *from, int n, int k)
{
    const float *w = from;
    int panels = (n + PANEL - 1) / PANEL;
    p->n = n;
    p->k = k;
    p->data = ops_cpu()->alloc((size_t)panels * PANEL * (size_t)k * sizeof(float));
#pragma omp parallel for num_threads(cpu_threads()) schedule(static)
    for (int b = 0; b < panels; b++) {
        float *to = (float *)p->data + (size_t)b * PANEL * (size_t)k;
        for (int j = 0; j < PANEL && b * PANEL + j < n; j++)
            for (int i = 0; i < k; i++)
                to[(size_t)i * PANEL + (size_t)j] =
                    w[((size_t)b * PANEL + (size_t)j) * (size_t)k + (size_t)i];
    }
}

/* One panel of packed weights: k rows of PANEL numbers, of which `columns` are outputs. */
typedef struct {
    const float *at;
    int k, columns, n; /* n: outputs of all panels, the length of a row of y */
} Panel;

SIMD void panel_rows(float *y, const float *x, const Panel *w, int rows, int add)
{
    Vec acc[ROWS][2];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = (Vec){0};
    for (int i = 0; i < w->k; i++) {
        Vec a = v_load(w->at + (size_t)i * PANEL), b = v_load(w->at + (size_t)i * PANEL + LANES);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            float s = x[(size_t)r * (size_t)w->k + (size_t)i];
            acc[r][0] += a * s;
            acc[r][1] += b * s;
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < 2; c++) {
            int left = w->columns - LANES * c;
            float *to = y + (size_t)r * (size_t)w->n + LANES * c;
            if (left > 0) v_put(to, add ? acc[r][c] + v_get(to, left) : acc[r][c], left);
        }
}

void cpu_matmul_packed(Num *y_, const Num *x_, const Packed *w, int rows, int add)
{
    float *y = y_;
    const float *x = x_;
    size_t n = (size_t)w->n, k = (size_t)w->k;
    for (int first = 0; first < w->n; first += PANEL) {
        const Panel panel = {.at = (const float *)w->data + (size_t)first * k,
                             .k = w->k,
                             .columns = w->n - first < PANEL ? w->n - first : PANEL,
                             .n = w->n};
        float *to = y + first;
        int r = 0;
        for (; r + ROWS <= rows; r += ROWS)
            panel_rows(to + (size_t)r * n, x + (size_t)r * k, &panel, ROWS, add);
        for (; r < rows; r++) panel_rows(to + (size_t)r * n, x + (size_t)r * k, &panel, 1, add);
    }
}

static size_t padded(int dim)
{
    return ((size_t)dim + 15) & ~(size_t)15;
}

static float *keys_of(const KvStore *s, const CachedLayer *l, int head)
{
    size_t heads = (size_t)l->layer * (size_t)l->s.kv_heads + (size_t)head;
    return s->k + heads * (size_t)s->cap * (size_t)l->s.dim;
}

static float *values_of(const KvStore *s, const CachedLayer *l, int head)
{
    size_t heads = (size_t)l->layer * (size_t)l->s.kv_heads + (size_t)head;
    return s->v + heads * (size_t)s->cap * padded(l->s.dim);
}

void cpu_kv_put(KvStore *to, const CachedLayer *l, int at, const float *qkv, int rows)
{
    HeadShape s = l->s;
    size_t ld = (size_t)head_row(s), d = (size_t)s.dim;
    for (int r = 0; r < rows; r++)
        for (int h = 0; h < s.kv_heads; h++) {
            const float *k = qkv + (size_t)r * ld + (size_t)(s.heads + h) * d,
                        *v = k + (size_t)s.kv_heads * d;
            size_t t = (size_t)(at + r);
            float *block = keys_of(to, l, h) + t / LANES * LANES * d + t % LANES;
            for (size_t i = 0; i < d; i++) block[i * LANES] = k[i];
            memcpy(values_of(to, l, h) + t * padded(s.dim), v, d * sizeof *v);
        }
}

enum { GROUP = 4 }; /* query heads that share a read of a key block */

/* The tokens of one store, for the query heads of a group that share a key head: their scores and,
 * after span_exp, the weights, [group][stride]. */
typedef struct {
    float *scores;
    size_t stride;
    const float *keys, *values;
    int len;
} Span;

SIMD void span_scores(const Span *t, const float *q, int group, int dim, float scale)
{
    for (int at = 0; at < t->len; at += LANES) {
        const float *block = t->keys + (size_t)at * (size_t)dim;
        Vec even[GROUP], odd[GROUP];
        for (int g = 0; g < group; g++) even[g] = odd[g] = (Vec){0};
        for (int i = 0; i < dim; i += 2) {
            Vec a = v_load(block + (size_t)i * LANES), b = v_load(block + (size_t)(i + 1) * LANES);
#pragma GCC unroll 4
            for (int g = 0; g < group; g++) {
                even[g] += a * q[(size_t)g * (size_t)dim + (size_t)i];
                odd[g] += b * q[(size_t)g * (size_t)dim + (size_t)i + 1];
            }
        }
        for (int g = 0; g < group; g++)
            v_store(t->scores + (size_t)g * t->stride + at, (even[g] + odd[g]) * scale);
    }
}

/* Compute exp(score - top) in place, with zero past len. Returns `sum` plus the sums of the
 * lanes. */
static Vec span_exp(float *scores, int len, float top, Vec sum)
{
    for (int t = 0; t < len; t += LANES) {
        Vec e = v_exp(v_load(scores + t) - top);
        for (int i = len - t; i < LANES; i++) e[i] = 0;
        v_store(scores + t, e);
        sum += e;
    }
    return sum;
}

static float span_top(const float *scores, int len, float top)
{
    Vec m = v_splat(top);
    int whole = len & -LANES;
    for (int t = 0; t < whole; t += LANES) m = v_max(v_load(scores + t), m);
    top = v_top(m);
    for (int t = whole; t < len; t++) top = scores[t] > top ? scores[t] : top;
    return top;
}

/* acc[g] += p[g] V for the vector of columns at c. Two chains hide the latency of one. */
SIMD void span_values(Vec *acc, const Span *s, int group, int c, size_t width)
{
    const float *p = s->scores, *values = s->values + c;
    size_t stride = s->stride;
    Vec odd[GROUP];
#pragma GCC unroll 4
    for (int g = 0; g < group; g++) odd[g] = (Vec){0};
    int t = 0;
    for (; t + 2 <= s->len; t += 2) {
        Vec a = v_load(values + (size_t)t * width), b = v_load(values + (size_t)(t + 1) * width);
#pragma GCC unroll 4
        for (int g = 0; g < group; g++) {
            acc[g] += a * p[(size_t)g * stride + (size_t)t];
            odd[g] += b * p[(size_t)g * stride + (size_t)t + 1];
        }
    }
    if (t < s->len)
        for (int g = 0; g < group; g++)
            acc[g] += v_load(values + (size_t)t * width) * p[(size_t)g * stride + (size_t)t];
#pragma GCC unroll 4
    for (int g = 0; g < group; g++) acc[g] += odd[g];
}

SIMD void cached_group(float *out, const float *q, const KvRow *row, const CachedLayer *l, int kv,
                       int group)
{
    const KvStore *a = row->prefix, *b = row->own;
    size_t split = ((size_t)a->len + 15) & ~(size_t)15, stride = (size_t)a->cap + (size_t)b->cap,
           width = padded(l->s.dim);
    int dim = l->s.dim;
    const Span prefix = {l->scores, stride, keys_of(a, l, kv), values_of(a, l, kv), a->len},
               own = {l->scores + split, stride, keys_of(b, l, kv), values_of(b, l, kv), b->len};
    float scale = 1.0f / sqrtf((float)dim), inverse[GROUP];
    span_scores(&prefix, q, group, dim, scale);
    span_scores(&own, q, group, dim, scale);
    for (int g = 0; g < group; g++) {
        float *mine = l->scores + (size_t)g * stride, top = span_top(mine, a->len, -INFINITY);
        top = span_top(mine + split, b->len, top);
        Vec sum = span_exp(mine, a->len, top, (Vec){0});
        inverse[g] = 1.0f / v_sum(span_exp(mine + split, b->len, top, sum));
    }
    for (int c = 0; c < dim; c += LANES) {
        Vec acc[GROUP];
        for (int g = 0; g < group; g++) acc[g] = (Vec){0};
        span_values(acc, &prefix, group, c, width);
        span_values(acc, &own, group, c, width);
        for (int g = 0; g < group; g++)
            v_put(out + (size_t)g * (size_t)dim + c, acc[g] * inverse[g], dim - c);
    }
}

void cpu_attention_cached(float *out, const float *qkv, const KvRow *row, int rows,
                          const CachedLayer *l)
{
    HeadShape s = l->s;
    int per = s.heads / s.kv_heads;
    for (int r = 0; r < rows; r++)
        for (int kv = 0; kv < s.kv_heads; kv++)
            for (int g = 0; g < per; g += GROUP) {
                int group = per - g < GROUP ? per - g : GROUP;
                size_t at = (size_t)(kv * per + g) * (size_t)s.dim;
                float *o = out + (size_t)r * (size_t)(s.heads * s.dim) + at;
                const float *q = qkv + (size_t)r * (size_t)head_row(s) + at;
                switch (group) { /* constants, so that the accumulators are registers */
                case 1: cached_group(o, q, &row[r], l, kv, 1); break;
                case 2: cached_group(o, q, &row[r], l, kv, 2); break;
                case 3: cached_group(o, q, &row[r], l, kv, 3); break;
                default: cached_group(o, q, &row[r], l, kv, 4); break;
                }
            }
}
