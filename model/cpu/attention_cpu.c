/* Attention over whole sequences, for training and prefill. Each head processes blocks of queries
 * against all keys up to the block, so that at most BLOCK x T scores exist at a time. The backward
 * pass recomputes the probabilities from the log-sum-exp. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "base/memory.h"
#include "model/cpu/blas.h"
#include "model/cpu/cpu_kernels.h"
#include "model/cpu/simd.h"

enum { BLOCK = 64 };

/* Replace the scores of a row by exp(score - max), and by zero from `valid` on. Returns the
 * log-sum-exp; *inverse is 1/sum. */
static float softmax_row(float *row, int valid, int width, float *inverse)
{
    Vec top = v_splat(-INFINITY), sum = {0};
    int whole = valid & -LANES;
    for (int i = 0; i < whole; i += LANES) top = v_max(v_load(row + i), top);
    float m = v_top(top);
    for (int i = whole; i < valid; i++) m = row[i] > m ? row[i] : m;
    for (int i = 0; i < valid; i += LANES) {
        Vec e = v_exp(v_get(row + i, valid - i) - m);
        v_put(row + i, e, valid - i);
        sum += i < whole ? e : v_load_part(row + i, valid - i);
    }
    memset(row + valid, 0, (size_t)(width - valid) * sizeof *row);
    float s = v_sum(sum);
    *inverse = 1.0f / s;
    return m + logf(s);
}

/* One head of one sequence of len rows. */
typedef struct {
    const float *q, *k, *v;
    int len;
    HeadShape s;
} Head;

/* Rows of q, k or v of a head. */
static Matrix rows_of(const Head *h, const float *x, int first, int rows)
{
    int ld = head_row(h->s);
    return (Matrix){x + (size_t)first * (size_t)ld, rows, h->s.dim, ld, 0};
}

static void head_forward(const Head *h, float *out, float *lse, float *scores)
{
    int d = h->s.dim, wide = h->s.heads * d;
    float scale = 1.0f / sqrtf((float)d);
    for (int at = 0; at < h->len; at += BLOCK) {
        int rows = h->len - at < BLOCK ? h->len - at : BLOCK, keys = at + rows;
        float inverse[BLOCK], *o = out + (size_t)at * (size_t)wide;
        Matrix q = rows_of(h, h->q, at, rows), k = rows_of(h, h->k, 0, keys),
               v = rows_of(h, h->v, 0, keys);
        blas_sgemm(scale, q, transposed(k), 0, scores, keys);
        for (int r = 0; r < rows; r++)
            lse[(size_t)(at + r) * (size_t)h->s.heads] =
                softmax_row(scores + (size_t)r * (size_t)keys, at + r + 1, keys, &inverse[r]);
        blas_sgemm(1, matrix(scores, rows, keys), v, 0, o, wide);
        for (int r = 0; r < rows; r++)
            for (int i = 0; i < d; i++) o[(size_t)r * (size_t)wide + (size_t)i] *= inverse[r];
    }
}

void cpu_attention(Num *out_, float *lse, const Num *qkv_, const BatchView *b, HeadShape s)
{
    float *out = out_;
    const float *qkv = qkv_;
    const int32_t *start = b->start;
    size_t ld = (size_t)head_row(s), scratch = (size_t)BLOCK * (size_t)b->longest + 16;
    int threads = cpu_threads(), tasks = b->n * s.heads;
    float *scores = memory_array((size_t)threads, scratch * sizeof *scores);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int t = 0; t < tasks; t++) {
        int h = t % s.heads, row = start[t / s.heads], len = start[t / s.heads + 1] - row;
        const float *base = qkv + (size_t)row * ld;
        size_t kv = (size_t)(h / (s.heads / s.kv_heads)), d = (size_t)s.dim;
        Head head = {.q = base + (size_t)h * d,
                     .k = base + ((size_t)s.heads + kv) * d,
                     .v = base + ((size_t)(s.heads + s.kv_heads) + kv) * d,
                     .len = len,
                     .s = s};
        head_forward(&head, out + ((size_t)row * (size_t)s.heads + (size_t)h) * d,
                     lse + (size_t)row * (size_t)s.heads + h,
                     scores + (size_t)omp_get_thread_num() * scratch);
    }
    free(scores);
}

/* p holds scores and becomes probabilities; dp becomes p (dp - delta) scale. */
static void score_grad_row(float *p, float *dp, float lse, float delta, float scale, int valid,
                           int width)
{
    for (int i = 0; i < valid; i += LANES) {
        Vec e = v_exp(v_get(p + i, valid - i) - lse);
        v_put(p + i, e, valid - i);
        v_put(dp + i, e * (v_get(dp + i, valid - i) - delta) * scale, valid - i);
    }
    memset(p + valid, 0, (size_t)(width - valid) * sizeof *p);
    memset(dp + valid, 0, (size_t)(width - valid) * sizeof *dp);
}

typedef struct {
    Head at;
    const float *o, *d_o, *lse;
    float *dq, *dk, *dv;
} HeadGrad;

/* Adds to dK and dV, which the query heads of a group share. */
static void head_grad(const HeadGrad *g, float *p, float *dp)
{
    const Head *h = &g->at;
    int d = h->s.dim, ld = head_row(h->s), wide = h->s.heads * d;
    float scale = 1.0f / sqrtf((float)d);
    for (int at = 0; at < h->len; at += BLOCK) {
        int rows = h->len - at < BLOCK ? h->len - at : BLOCK, keys = at + rows;
        const float *o = g->o + (size_t)at * (size_t)wide,
                    *d_o = g->d_o + (size_t)at * (size_t)wide;
        Matrix q = rows_of(h, h->q, at, rows), k = rows_of(h, h->k, 0, keys),
               v = rows_of(h, h->v, 0, keys), out = {d_o, rows, d, wide, 0};
        Matrix share = matrix(p, rows, keys), dscore = matrix(dp, rows, keys);
        blas_sgemm(scale, q, transposed(k), 0, p, keys);
        blas_sgemm(1, out, transposed(v), 0, dp, keys);
        for (int r = 0; r < rows; r++) {
            size_t row = (size_t)r * (size_t)wide;
            Vec delta = {0};
            for (int i = 0; i < d; i += LANES)
                delta += v_get(o + row + i, d - i) * v_get(d_o + row + i, d - i);
            score_grad_row(p + (size_t)r * (size_t)keys, dp + (size_t)r * (size_t)keys,
                           g->lse[(size_t)(at + r) * (size_t)h->s.heads], v_sum(delta), scale,
                           at + r + 1, keys);
        }
        blas_sgemm(1, transposed(share), out, 1, g->dv, ld);
        blas_sgemm(1, dscore, k, 0, g->dq + (size_t)at * (size_t)ld, ld);
        blas_sgemm(1, transposed(dscore), q, 1, g->dk, ld);
    }
}

void cpu_attention_grad(Num *dqkv_, const Num *dout_, const Attended *a, const BatchView *b,
                        HeadShape s)
{
    float *dqkv = dqkv_;
    const float *dout = dout_, *out = a->out, *qkv = a->qkv;
    const int32_t *start = b->start;
    size_t ld = (size_t)head_row(s), d = (size_t)s.dim,
           half = (size_t)BLOCK * (size_t)b->longest + 16;
    int threads = cpu_threads(), tasks = b->n * s.kv_heads, group = s.heads / s.kv_heads;
    float *scores = memory_array((size_t)threads, 2 * half * sizeof *scores);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int t = 0; t < tasks; t++) {
        int kv = t % s.kv_heads, row = start[t / s.kv_heads], len = start[t / s.kv_heads + 1] - row;
        size_t base = (size_t)row * ld, k_at = base + (size_t)(s.heads + kv) * d,
               v_at = k_at + (size_t)s.kv_heads * d;
        float *mine = scores + (size_t)omp_get_thread_num() * 2 * half;
        for (int r = 0; r < len; r++) {
            memset(dqkv + k_at + (size_t)r * ld, 0, d * sizeof *dqkv);
            memset(dqkv + v_at + (size_t)r * ld, 0, d * sizeof *dqkv);
        }
        for (int h = kv * group; h < (kv + 1) * group; h++) {
            size_t o_at = ((size_t)row * (size_t)s.heads + (size_t)h) * d,
                   q_at = base + (size_t)h * d;
            HeadGrad g = {.at = {qkv + q_at, qkv + k_at, qkv + v_at, len, s},
                          .o = out + o_at,
                          .d_o = dout + o_at,
                          .lse = a->lse + (size_t)row * (size_t)s.heads + h,
                          .dq = dqkv + q_at,
                          .dk = dqkv + k_at,
                          .dv = dqkv + v_at};
            head_grad(&g, mine, mine + half);
        }
    }
    free(scores);
}
