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

SIMD void panel_rows(float *y, int n, const float *x, int k, const float *panel, int rows,
                     int columns, int add)
{
    Vec acc[ROWS][2];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = (Vec){0};
    for (int i = 0; i < k; i++) {
        Vec a = v_load(panel + (size_t)i * PANEL), b = v_load(panel + (size_t)i * PANEL + LANES);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            float s = x[(size_t)r * (size_t)k + (size_t)i];
            acc[r][0] += a * s;
            acc[r][1] += b * s;
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < 2; c++) {
            int left = columns - LANES * c;
            float *to = y + (size_t)r * (size_t)n + LANES * c;
            if (left > 0) v_put(to, add ? acc[r][c] + v_get(to, left) : acc[r][c], left);
        }
}

void cpu_matmul_packed(Num *y_, const Num *x_, const Packed *w, int rows, int add)
{
    float *y = y_;
    const float *x = x_;
    int panels = (w->n + PANEL - 1) / PANEL;
    for (int b = 0; b < panels; b++) {
        const float *panel = (const float *)w->data + (size_t)b * PANEL * (size_t)w->k;
        int columns = w->n - b * PANEL < PANEL ? w->n - b * PANEL : PANEL, r = 0;
        float *to = y + (size_t)b * PANEL;
        size_t n = (size_t)w->n, k = (size_t)w->k;
        for (; r + ROWS <= rows; r += ROWS)
            panel_rows(to + (size_t)r * n, w->n, x + (size_t)r * k, w->k, panel, ROWS, columns,
                       add);
        for (; r < rows; r++)
            panel_rows(to + (size_t)r * n, w->n, x + (size_t)r * k, w->k, panel, 1, columns, add);
    }
}

static size_t padded(int dim)
{
    return ((size_t)dim + 15) & ~(size_t)15;
}

static float *keys_of(const KvStore *s, int layer, int head, HeadShape h)
{
    return s->k +
           ((size_t)layer * (size_t)h.kv_heads + (size_t)head) * (size_t)s->cap * (size_t)h.dim;
}

static float *values_of(const KvStore *s, int layer, int head, HeadShape h)
{
    return s->v +
           ((size_t)layer * (size_t)h.kv_heads + (size_t)head) * (size_t)s->cap * padded(h.dim);
}

void cpu_kv_put(KvStore *to, int layer, int at, const float *qkv, int rows, HeadShape s)
{
    size_t ld = (size_t)head_row(s), d = (size_t)s.dim;
    for (int r = 0; r < rows; r++)
        for (int h = 0; h < s.kv_heads; h++) {
            const float *k = qkv + (size_t)r * ld + (size_t)(s.heads + h) * d,
                        *v = k + (size_t)s.kv_heads * d;
            size_t t = (size_t)(at + r);
            float *block = keys_of(to, layer, h, s) + t / LANES * LANES * d + t % LANES;
            for (size_t i = 0; i < d; i++) block[i * LANES] = k[i];
            memcpy(values_of(to, layer, h, s) + t * padded(s.dim), v, d * sizeof *v);
        }
}

enum { GROUP = 4 }; /* query heads that share a read of a key block */

/* Compute score[g][0..len) of `group` query heads against one store. */
SIMD void span_scores(float *scores, size_t stride, const float *q, int group, const float *keys,
                      int len, int dim, float scale)
{
    for (int t = 0; t < len; t += LANES) {
        const float *block = keys + (size_t)t * (size_t)dim;
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
            v_store(scores + (size_t)g * stride + t, (even[g] + odd[g]) * scale);
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

/* acc[g] += p[g] V for one vector of columns. Two chains hide the latency of one. */
SIMD void span_values(Vec *acc, const float *p, size_t stride, int group, const float *values,
                      int len, size_t width)
{
    Vec odd[GROUP];
#pragma GCC unroll 4
    for (int g = 0; g < group; g++) odd[g] = (Vec){0};
    int t = 0;
    for (; t + 2 <= len; t += 2) {
        Vec a = v_load(values + (size_t)t * width), b = v_load(values + (size_t)(t + 1) * width);
#pragma GCC unroll 4
        for (int g = 0; g < group; g++) {
            acc[g] += a * p[(size_t)g * stride + (size_t)t];
            odd[g] += b * p[(size_t)g * stride + (size_t)t + 1];
        }
    }
    if (t < len)
        for (int g = 0; g < group; g++)
            acc[g] += v_load(values + (size_t)t * width) * p[(size_t)g * stride + (size_t)t];
#pragma GCC unroll 4
    for (int g = 0; g < group; g++) acc[g] += odd[g];
}

SIMD void cached_group(float *out, const float *q, const KvRow *row, int layer, int kv, int group,
                       HeadShape s, float *scores)
{
    const KvStore *a = row->prefix, *b = row->own;
    size_t split = ((size_t)a->len + 15) & ~(size_t)15, stride = (size_t)a->cap + (size_t)b->cap,
           width = padded(s.dim);
    float scale = 1.0f / sqrtf((float)s.dim), inverse[GROUP];
    span_scores(scores, stride, q, group, keys_of(a, layer, kv, s), a->len, s.dim, scale);
    span_scores(scores + split, stride, q, group, keys_of(b, layer, kv, s), b->len, s.dim, scale);
    for (int g = 0; g < group; g++) {
        float *mine = scores + (size_t)g * stride, top = span_top(mine, a->len, -INFINITY);
        top = span_top(mine + split, b->len, top);
        Vec sum = span_exp(mine, a->len, top, (Vec){0});
        inverse[g] = 1.0f / v_sum(span_exp(mine + split, b->len, top, sum));
    }
    for (int c = 0; c < s.dim; c += LANES) {
        Vec acc[GROUP];
        for (int g = 0; g < group; g++) acc[g] = (Vec){0};
        span_values(acc, scores, stride, group, values_of(a, layer, kv, s) + c, a->len, width);
        span_values(acc, scores + split, stride, group, values_of(b, layer, kv, s) + c, b->len,
                    width);
        for (int g = 0; g < group; g++)
            v_put(out + (size_t)g * (size_t)s.dim + c, acc[g] * inverse[g], s.dim - c);
    }
}

void cpu_attention_cached(float *out, const float *qkv, const KvRow *row, int rows, int layer,
                          HeadShape s, float *scratch)
{
    int per = s.heads / s.kv_heads;
    for (int r = 0; r < rows; r++)
        for (int kv = 0; kv < s.kv_heads; kv++)
            for (int g = 0; g < per; g += GROUP) {
                int group = per - g < GROUP ? per - g : GROUP;
                size_t at = (size_t)(kv * per + g) * (size_t)s.dim;
                float *o = out + (size_t)r * (size_t)(s.heads * s.dim) + at;
                const float *q = qkv + (size_t)r * (size_t)head_row(s) + at;
                switch (group) { /* constants, so that the accumulators are registers */
                case 1: cached_group(o, q, &row[r], layer, kv, 1, s, scratch); break;
                case 2: cached_group(o, q, &row[r], layer, kv, 2, s, scratch); break;
                case 3: cached_group(o, q, &row[r], layer, kv, 3, s, scratch); break;
                default: cached_group(o, q, &row[r], layer, kv, 4, s, scratch); break;
                }
            }
}
