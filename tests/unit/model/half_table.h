/* A table of operations with bf16 numbers: the CPU's operations, with widened inputs and rounded
 * results. */
#ifndef TESTS_HALF_TABLE_H
#define TESTS_HALF_TABLE_H

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "model/core/halves.h"
#include "model/core/ops.h"
#include "model/cpu/ops_cpu.h"

static inline float *widen(const Num *p, size_t n)
{
    float *x = memory_array(n + 1, sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = bf16_to_float(((const uint16_t *)p)[i]);
    return x;
}

/* Round `groups` runs of n numbers, ld apart, and free x. */
static inline void round_back(Num *p, float *x, int rows, size_t n, size_t ld)
{
    for (size_t r = 0; r < (size_t)rows; r++)
        for (size_t i = 0; i < n; i++) ((uint16_t *)p)[r * ld + i] = float_to_bf16(x[r * ld + i]);
    free(x);
}

static inline size_t extent(int rows, int columns, int ld)
{
    return (size_t)(rows - 1) * (size_t)ld + (size_t)columns;
}

static inline void half_load(Num *to, const float *host, size_t n)
{
    for (size_t i = 0; i < n; i++) ((uint16_t *)to)[i] = float_to_bf16(host[i]);
}

static inline void half_store(float *host, const Num *from, size_t n)
{
    for (size_t i = 0; i < n; i++) host[i] = bf16_to_float(((const uint16_t *)from)[i]);
}

static inline int half_memory(size_t *free_bytes, size_t *total, Error *err)
{
    (void)err;
    *free_bytes = *total = (size_t)1 << 34;
    return 0;
}

static inline float *widen_matrix(Matrix a)
{
    return widen(a.at,
                 a.turned ? extent(a.columns, a.rows, a.ld) : extent(a.rows, a.columns, a.ld));
}

static inline void half_gemm(const Gemm *g)
{
    Gemm w = *g;
    int m = g->a.rows, n = g->b.columns;
    size_t at = extent(m, n, g->ldd);
    float *a = widen_matrix(g->a), *b = widen_matrix(g->b);
    float *bias = g->bias ? widen(g->bias, (size_t)n) : NULL, *c = NULL;
    w.a.at = a;
    w.b.at = b;
    w.bias = bias;
    if (!g->wide) {
        c = g->beta != 0 ? widen(g->c, at) : memory_array(at, sizeof *c);
        w.c = w.d = c;
    }
    ops_cpu()->gemm(&w);
    if (c) round_back(g->d, c, m, (size_t)n, (size_t)g->ldd);
    free(a);
    free(b);
    free(bias);
}

static inline void half_bias_grad(float *db, const Num *dy, int rows, int n)
{
    float *y = widen(dy, (size_t)rows * (size_t)n);
    ops_cpu()->bias_grad(db, y, rows, n);
    free(y);
}

static inline size_t norm_extent(const Norm *v)
{
    return extent(v->rows, v->groups * v->n, v->ld);
}

static inline void round_norm(Num *y, float *wide, const Norm *v)
{
    round_back(y, wide, v->rows, (size_t)(v->groups * v->n), (size_t)v->ld);
}

static inline void half_rmsnorm(Num *y, const Norm *v)
{
    float *wide = memory_array(norm_extent(v), sizeof *wide), *weight = widen(v->w, (size_t)v->n);
    Norm f = *v;
    f.w = weight;
    ops_cpu()->rmsnorm(wide, &f);
    round_norm(y, wide, v);
    free(weight);
}

static inline void half_rmsnorm_grad(Num *dx, int more, float *dw, const Num *dy, const Norm *v)
{
    size_t at = norm_extent(v);
    float *out = widen(dy, at), *back = widen(dx, at), *weight = widen(v->w, (size_t)v->n);
    Norm f = *v;
    f.w = weight;
    ops_cpu()->rmsnorm_grad(back, more, dw, out, &f);
    round_norm(dx, back, v);
    free(out);
    free(weight);
}

static inline void half_head_norm(Num *y, const Norm *v)
{
    float *wide = widen(v->x, norm_extent(v)), *weight = widen(v->w, (size_t)v->n);
    Norm f = *v;
    f.x = wide;
    f.w = weight;
    ops_cpu()->head_norm(wide, &f);
    round_norm(y, wide, v);
    free(weight);
}

static inline void half_head_norm_grad(Num *dx, float *dw, const Num *dy, const Norm *v)
{
    size_t at = norm_extent(v);
    float *in = widen(v->x, at), *out = widen(dy, at), *back = widen(dx, at),
          *weight = widen(v->w, (size_t)v->n);
    Norm f = *v;
    f.x = in;
    f.w = weight;
    ops_cpu()->head_norm_grad(back, dw, out, &f);
    round_norm(dx, back, v);
    free(in);
    free(out);
    free(weight);
}

static inline void half_rope(Num *qkv, const Rotation *r, HeadShape s, float sign)
{
    size_t ld = (size_t)head_row(s);
    float *x = widen(qkv, (size_t)r->rows * ld);
    ops_cpu()->rope(x, r, s, sign);
    round_back(qkv, x, r->rows, ld, ld);
}

static inline void half_attention(Num *out, float *lse, const Num *qkv, const BatchView *b,
                                  HeadShape s)
{
    size_t wide = (size_t)(s.heads * s.dim);
    float *x = widen(qkv, (size_t)b->rows * (size_t)head_row(s)),
          *y = memory_array((size_t)b->rows * wide, sizeof *y);
    ops_cpu()->attention(y, lse, x, b, s);
    round_back(out, y, b->rows, wide, wide);
    free(x);
}

static inline void half_attention_grad(Num *dqkv, const Num *dout, const Attended *a,
                                       const BatchView *b, HeadShape s)
{
    size_t rows = (size_t)b->rows, wide = (size_t)(s.heads * s.dim), ld = (size_t)head_row(s);
    float *x = widen(a->qkv, rows * ld), *dx = memory_array(rows * ld, sizeof *dx),
          *y = widen(a->out, rows * wide), *dy = widen(dout, rows * wide);
    ops_cpu()->attention_grad(dx, dy, &(Attended){x, y, a->lse}, b, s);
    round_back(dqkv, dx, b->rows, ld, ld);
    free(x);
    free(y);
    free(dy);
}

static inline void half_swiglu(Num *act, const Num *gate_up, int rows, int ff)
{
    size_t n = (size_t)rows * (size_t)ff;
    float *x = widen(gate_up, 2 * n), *y = memory_array(n, sizeof *y);
    ops_cpu()->swiglu(y, x, rows, ff);
    round_back(act, y, rows, (size_t)ff, (size_t)ff);
    free(x);
}

static inline void half_swiglu_grad(Num *dgate_up, const Num *dact, const Num *gate_up, int rows,
                                    int ff)
{
    size_t n = (size_t)rows * (size_t)ff;
    float *x = widen(gate_up, 2 * n), *dy = widen(dact, n), *dx = memory_array(2 * n, sizeof *dx);
    ops_cpu()->swiglu_grad(dx, dy, x, rows, ff);
    round_back(dgate_up, dx, rows, 2 * (size_t)ff, 2 * (size_t)ff);
    free(x);
    free(dy);
}

static inline void half_embed(float *x, const Num *rows_of_ids, const int32_t *ids, int rows, int n)
{
    for (int r = 0; r < rows; r++)
        half_store(x + (size_t)r * (size_t)n,
                   (const uint16_t *)rows_of_ids + (size_t)ids[r] * (size_t)n, (size_t)n);
}

static inline void half_embed_grad(float *dtable, const Num *dx, const BatchView *b, int n)
{
    float *x = widen(dx, (size_t)b->rows * (size_t)n);
    ops_cpu()->embed_grad(dtable, x, b, n);
    free(x);
}

/* Rows begin where those of the logits do: they are twice as far apart as they are long. */
static inline void half_cross_entropy_grad(Num *dlogits, const float *lse, const float *weight,
                                           const Logits *l)
{
    size_t vocab = (size_t)l->vocab;
    float *x = memory_array((size_t)l->rows * vocab, sizeof *x);
    ops_cpu()->cross_entropy_grad(x, lse, weight, l);
    for (size_t r = 0; r < (size_t)l->rows; r++)
        half_load((uint16_t *)dlogits + 2 * r * vocab, x + r * vocab, vocab);
    free(x);
}

/* Round up or down to an adjacent number, with probabilities by distance. */
static inline uint16_t stochastic(float f, Random *r)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)((bits + (uint32_t)(random_u64(r) & 0xFFFF)) >> 16);
}

static inline void half_adamw(const AdamSlice *a, const AdamStep *s)
{
    AdamSlice wide = *a;
    size_t n = a->n;
    if (a->master) {
        wide.p = a->master;
        ops_cpu()->adamw(&wide, s);
        half_load(a->p, a->master, n);
        return;
    }
    float *x[3] = {widen(a->p, n), widen(a->m, n), widen(a->v, n)};
    uint16_t *to[3] = {a->p, a->m, a->v};
    Random r;
    random_init(&r, s->seed, 0);
    wide.p = x[0], wide.m = x[1], wide.v = x[2];
    ops_cpu()->adamw(&wide, s);
    for (int k = 0; k < 3; k++) {
        for (size_t i = 0; i < n; i++) to[k][i] = stochastic(x[k][i], &r);
        free(x[k]);
    }
}

static inline const Ops *half_table(void)
{
    static Ops t;
    t = *ops_cpu();
    t.is_cpu = 0;
    t.name = "half";
    t.num = 2;
    t.align = 128;
    t.load = half_load;
    t.store = half_store;
    t.memory = half_memory;
    t.gemm = half_gemm;
    t.bias_grad = half_bias_grad;
    t.rmsnorm = half_rmsnorm;
    t.rmsnorm_grad = half_rmsnorm_grad;
    t.head_norm = half_head_norm;
    t.head_norm_grad = half_head_norm_grad;
    t.rope = half_rope;
    t.attention = half_attention;
    t.attention_grad = half_attention_grad;
    t.swiglu = half_swiglu;
    t.swiglu_grad = half_swiglu_grad;
    t.embed = half_embed;
    t.embed_grad = half_embed_grad;
    t.cross_entropy_grad = half_cross_entropy_grad;
    t.adamw = half_adamw;
    return &t;
}

#endif
