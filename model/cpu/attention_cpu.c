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

static void head_forward(float *out, float *lse, const float *q, const float *k, const float *v,
                         int len, HeadShape s, float *scores)
{
    int ld = head_row(s), wide = s.heads * s.dim;
    float scale = 1.0f / sqrtf((float)s.dim);
    for (int at = 0; at < len; at += BLOCK) {
        int rows = len - at < BLOCK ? len - at : BLOCK, keys = at + rows;
        float inverse[BLOCK], *o = out + (size_t)at * (size_t)wide;
        blas_sgemm(CblasNoTrans, CblasTrans, rows, keys, s.dim, scale, q + (size_t)at * (size_t)ld,
                   ld, k, ld, 0, scores, keys);
        for (int r = 0; r < rows; r++)
            lse[(size_t)(at + r) * (size_t)s.heads] =
                softmax_row(scores + (size_t)r * (size_t)keys, at + r + 1, keys, &inverse[r]);
        blas_sgemm(CblasNoTrans, CblasNoTrans, rows, s.dim, keys, 1, scores, keys, v, ld, 0, o,
                   wide);
        for (int r = 0; r < rows; r++)
            for (int i = 0; i < s.dim; i++) o[(size_t)r * (size_t)wide + (size_t)i] *= inverse[r];
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
        head_forward(out + ((size_t)row * (size_t)s.heads + (size_t)h) * d,
                     lse + (size_t)row * (size_t)s.heads + h, base + (size_t)h * d,
                     base + ((size_t)s.heads + kv) * d,
                     base + ((size_t)(s.heads + s.kv_heads) + kv) * d, len, s,
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
    const float *q, *k, *v, *o, *d_o, *lse;
    float *dq, *dk, *dv;
} HeadGrad;

/* Adds to dK and dV, which the query heads of a group share. */
static void head_backward(const HeadGrad *g, int len, HeadShape s, float *p, float *dp)
{
    int ld = head_row(s), wide = s.heads * s.dim, d = s.dim;
    float scale = 1.0f / sqrtf((float)d);
    for (int at = 0; at < len; at += BLOCK) {
        int rows = len - at < BLOCK ? len - at : BLOCK, keys = at + rows;
        const float *q = g->q + (size_t)at * (size_t)ld, *o = g->o + (size_t)at * (size_t)wide;
        const float *d_o = g->d_o + (size_t)at * (size_t)wide;
        blas_sgemm(CblasNoTrans, CblasTrans, rows, keys, d, scale, q, ld, g->k, ld, 0, p, keys);
        blas_sgemm(CblasNoTrans, CblasTrans, rows, keys, d, 1, d_o, wide, g->v, ld, 0, dp, keys);
        for (int r = 0; r < rows; r++) {
            size_t row = (size_t)r * (size_t)wide;
            Vec delta = {0};
            for (int i = 0; i < d; i += LANES)
                delta += v_get(o + row + i, d - i) * v_get(d_o + row + i, d - i);
            score_grad_row(p + (size_t)r * (size_t)keys, dp + (size_t)r * (size_t)keys,
                           g->lse[(size_t)(at + r) * (size_t)s.heads], v_sum(delta), scale,
                           at + r + 1, keys);
        }
        blas_sgemm(CblasTrans, CblasNoTrans, keys, d, rows, 1, p, keys, d_o, wide, 1, g->dv, ld);
        blas_sgemm(CblasNoTrans, CblasNoTrans, rows, d, keys, 1, dp, keys, g->k, ld, 0,
                   g->dq + (size_t)at * (size_t)ld, ld);
        blas_sgemm(CblasTrans, CblasNoTrans, keys, d, rows, 1, dp, keys, q, ld, 1, g->dk, ld);
    }
}

void cpu_attention_grad(Num *dqkv_, const Num *dout_, const Num *out_, const float *lse,
                        const Num *qkv_, const BatchView *b, HeadShape s)
{
    float *dqkv = dqkv_;
    const float *dout = dout_, *out = out_, *qkv = qkv_;
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
            HeadGrad g = {.q = qkv + q_at,
                          .k = qkv + k_at,
                          .v = qkv + v_at,
                          .o = out + o_at,
                          .d_o = dout + o_at,
                          .lse = lse + (size_t)row * (size_t)s.heads + h,
                          .dq = dqkv + q_at,
                          .dk = dqkv + k_at,
                          .dv = dqkv + v_at};
            head_backward(&g, len, s, mine, mine + half);
        }
    }
    free(scores);
}
