/* The operations of a transformer behind one table: the CPU's (fp32, OpenBLAS) and CUDA's (bf16
 * with fp32 sums, cuBLASLt and our kernels). Arrays are row-major, a row is a token; `Num` is the
 * table's own number, `num` bytes of it: weights and activations. What is `float` here is fp32 on
 * every device: the residual stream, statistics, logits, gradients of weights, the optimiser's
 * state. Pointers are to memory of `alloc` unless a comment says host.
 *
 * No result depends on the number of threads or on timing: work is cut by shape alone, sums run in
 * a fixed order.
 *
 * Operations may run after they return, in order. One that fails (no memory, a lost GPU) makes all
 * later ones do nothing until `status` has told why: whoever runs a pass asks once at its end. */
#ifndef MODEL_CORE_OPS_H
#define MODEL_CORE_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/core/model.h"

typedef void Num;

/* A row of attention: q heads, then k heads, then v heads, each of dim numbers. */
typedef struct {
    int heads, kv_heads, dim;
} HeadShape;

static inline int head_row(HeadShape s)
{
    return (s.heads + 2 * s.kv_heads) * s.dim;
}

/* A batch where the operations read it: n sequences laid end to end, sequence i is rows start[i] to
 * start[i+1]. */
typedef struct {
    int rows, n, longest;     /* longest: rows of the longest sequence */
    const int32_t *ids, *pos; /* [rows] */
    const int32_t *target;    /* [rows]: the next id, -1 at the end of a sequence */
    const int32_t *start;     /* [n+1] */
    /* rows in the order of their ids (equal ids: in order of rows); run j, of one id, is
     * order[run[j]..run[j+1]) */
    const int32_t *order, *run;
    int runs;
} BatchView;

/* d = alpha op(a) op(b) + beta c + bias; op(a) is [m,k], op(b) [k,n]. ta: a is stored [k,m]; tb: b
 * is stored [n,k]. A d of bf16 that is `ordered` is round(round(alpha op(a) op(b)) + C), where C is
 * beta c, or bias, or round(beta c + bias); of others the product may be rounded before C is added
 * to it or not. */
typedef struct {
    int ta, tb, m, n, k;
    const Num *a, *b;
    int lda, ldb;
    float alpha, beta;
    const void *c; /* laid out as d, may be d; not read when beta is 0 */
    void *d;
    int ldd;
    int wide;        /* c and d are float */
    const Num *bias; /* [n], or NULL */
    int ordered; /* every sum in the one order that a Decoder's products have, whatever m: forward
                    passes */
} Gemm;

/* A weight matrix [n, k] as multiplication by few rows wants it. */
typedef struct {
    Num *data;
    int n, k;
} Packed;

typedef struct {
    double lr, beta1, beta2, eps, decay, scale; /* scale: of the gradient (clipping) */
    double correct1, correct2;                  /* 1 - beta^step */
    int lean;      /* no master; m and v are Num, everything is rounded stochastically */
    uint64_t seed; /* of that rounding: of step and tensor */
} AdamStep;

/* Exchange of arrays between the ranks of model/core/ranks.h, which says what the members do. What
 * fails is kept for `status`. */
enum { COLLECTIVE_ID_BYTES = 128 };
typedef struct {
    int (*new_id)(void *id, Error *err); /* id: [COLLECTIVE_ID_BYTES], made by rank 0 for all */
    int (*join)(const void *id, int rank, int n, Error *err); /* called by all ranks at once */
    void (*leave)(void);
    void (*all_reduce)(float *x, size_t n);
    void (*broadcast)(void *p, size_t bytes);
    void (*reduce_scatter)(float *x, size_t each);
    void (*all_gather)(void *p, size_t bytes);
    void (*settle)(void);
} Collectives;

struct Ops {
    const char *name; /* "cpu", "cuda:0" */
    int is_cpu;       /* arrays are in host memory */
    int num;          /* bytes of a Num: 4 (float) or 2 (bf16) */
    int align;        /* tensors begin at multiples of this many Nums */

    /* ---- memory ---- */
    void *(*alloc)(
        size_t bytes); /* zeroed, 64-byte aligned (CUDA: 256); on the CPU touched when first used */
    void (*release)(void *p); /* NULL is none */
    void (*copy)(void *to, const void *from, size_t bytes);
    void (*zero)(void *p, size_t bytes);
    void (*upload)(void *to, const void *host,
                   size_t bytes); /* host memory may be reused on return */
    void (*download)(void *host, const void *from,
                     size_t bytes);                     /* waits for what was asked before */
    void (*load)(Num *to, const float *host, size_t n); /* rounded to nearest, ties to even */
    void (*store)(float *host, const Num *from, size_t n);
    int (*status)(Error *err); /* waits; 0, or -1 and the first failure since the last call, which
                                  is forgotten */
    int (*memory)(size_t *free_bytes, size_t *total_bytes, Error *err);

    /* ---- passes over a batch ---- */
    void (*gemm)(const Gemm *g);
    void (*bias_grad)(float *db, const Num *dy, int rows, int n); /* adds */
    void (*add)(Num *y, const Num *x, size_t n);                  /* y += x */

    /* RMSNorm of rows of the residual stream. */
    void (*rmsnorm)(Num *y, const float *x, const Num *w, int rows, int n, float eps);
    /* dx += (add) or = the gradient; dx may be dy. dw is added to, unless it is NULL. */
    void (*rmsnorm_grad)(Num *dx, int add, float *dw, const Num *dy, const float *x, const Num *w,
                         int rows, int n, float eps);
    /* The same of q or k heads: each row holds `groups` vectors of n, from offset 0; rows are ld
     * apart. y may be x. */
    void (*head_norm)(Num *y, const Num *x, const Num *w, int rows, int groups, int n, int ld,
                      float eps);
    /* dx = the gradient, may be dy; dw is added to, unless it is NULL. */
    void (*head_norm_grad)(Num *dx, float *dw, const Num *dy, const Num *x, const Num *w, int rows,
                           int groups, int n, int ld, float eps);

    /* Rotate the q and k heads in place; cosines and sines are [position][dim/2]; sign -1 goes
     * back. */
    void (*rope)(Num *qkv, const int32_t *pos, const float *cosines, const float *sines, int rows,
                 HeadShape s, float sign);

    /* Causal attention within each sequence, scaled by dim^-0.5; out is [rows][heads*dim], lse
     * [rows][heads]. */
    void (*attention)(Num *out, float *lse, const Num *qkv, const BatchView *b, HeadShape s);
    void (*attention_grad)(Num *dqkv, const Num *dout, const Num *out, const float *lse,
                           const Num *qkv, const BatchView *b, HeadShape s);

    void (*swiglu)(Num *act, const Num *gate_up, int rows,
                   int ff); /* gate_up: [rows][2 ff], gate first */
    void (*swiglu_grad)(Num *dgate_up, const Num *dact, const Num *gate_up, int rows, int ff);

    void (*embed)(float *x, const Num *table, const int32_t *ids, int rows, int n);
    void (*embed_grad)(float *dtable, const Num *dx, const BatchView *b, int n); /* adds */

    /* logp[r] = log p(target[r]) and the log-sum-exp of each row; a target of -1 gives logp 0. */
    void (*cross_entropy)(float *logp, float *lse, const float *logits, const int32_t *target,
                          int rows, int vocab);
    /* dlogits = weight (onehot - p), over the logits: row r begins at the same byte, so rows of
     * dlogits are vocab * 4 / num apart. */
    void (*cross_entropy_grad)(Num *dlogits, const float *logits, const float *lse,
                               const int32_t *target, const float *weight, int rows, int vocab);

    double (*sum_squares)(const float *x, size_t n); /* waits */
    /* g becomes 0. master: fp32 weights that p is rounded from; NULL where p is fp32, or lean. */
    void (*adamw)(Num *p, float *master, float *g, void *m, void *v, size_t n, const AdamStep *s);

    /* ---- decoding on the CPU: a row's result does not depend on the rows beside it ---- */
    void (*pack)(Packed *p, const Num *w, int n, int k); /* p->data is the caller's to release */
    /* y [rows][n] = (add: +=) x W^T, x [rows][k] */
    void (*matmul_packed)(Num *y, const Num *x, const Packed *w, int rows, int add);
    /* body(ctx, part, first, rows) for parts of the rows, side by side; parts() of them at most. */
    void (*parallel)(int rows, void (*body)(void *ctx, int part, int first, int rows), void *ctx);
    int (*parts)(void);

    const Collectives *collectives; /* NULL: the ranks exchange arrays through host memory */
};

/* p + n Nums of the table. */
static inline Num *num_at(const Ops *op, const Num *p, size_t n)
{
    return (char *)p + n * (size_t)op->num;
}

#endif
