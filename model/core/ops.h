/* The operations of a transformer behind one table: the CPU's (fp32, OpenBLAS) and CUDA's (bf16
 * with fp32 sums, cuBLASLt and our kernels). Arrays are row-major, and a row is a token. `Num` is
 * the number type of the table, of `num` bytes, for weights and activations. `float` is fp32 on
 * every device: the residual stream, statistics, logits, gradients of weights and the state of the
 * optimizer. Pointers are to memory of `alloc` unless a comment says host.
 *
 * Results do not depend on the number of threads or on timing: work is divided by shape alone, and
 * sums have a fixed order.
 *
 * Operations are asynchronous and run in the order of the calls. After a failure (no memory, a lost
 * GPU) all later operations do nothing until `status` has reported it. The caller of a pass
 * therefore checks once, at its end. */
#ifndef MODEL_CORE_OPS_H
#define MODEL_CORE_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/core/model.h"

typedef void Num;

/* A row of q|k|v: q heads, then k heads, then v heads, each of dim numbers. */
typedef struct {
    int heads, kv_heads, dim;
} HeadShape;

static inline int head_row(HeadShape s)
{
    return (s.heads + 2 * s.kv_heads) * s.dim;
}

/* A batch as the operations read it: n sequences laid end to end. Sequence i is rows start[i] to
 * start[i+1]. */
typedef struct {
    int rows, n, longest;     /* longest: rows of the longest sequence */
    const int32_t *ids, *pos; /* [rows] */
    const int32_t *target;    /* [rows]: the next id; -1 at the end of a sequence */
    const int32_t *start;     /* [n+1] */
    /* Rows sorted by id, and rows with equal ids by row. Run j, the rows of one id, is
     * order[run[j]..run[j+1]). */
    const int32_t *order, *run;
    int runs;
} BatchView;

/* A matrix [rows, columns] whose stored rows are ld numbers apart. turned: its transpose is
 * stored. */
typedef struct {
    const Num *at;
    int rows, columns, ld, turned;
} Matrix;

static inline Matrix matrix(const Num *at, int rows, int columns)
{
    return (Matrix){at, rows, columns, columns, 0};
}

static inline Matrix transposed(Matrix a)
{
    return (Matrix){a.at, a.columns, a.rows, a.ld, !a.turned};
}

/* d = alpha a b + beta c + bias, where a is [m,k] and b is [k,n]. When d is bf16 and `ordered`, it
 * is round(round(alpha a b) + C), where C is beta c, or bias, or round(beta c + bias). Otherwise
 * the product may or may not be rounded before C is added. */
typedef struct {
    Matrix a, b;
    float alpha, beta;
    const void *c; /* has the layout of d and may be d; not read when beta is 0 */
    void *d;
    int ldd;
    int wide;        /* c and d are float */
    const Num *bias; /* [n], or NULL */
    /* Every sum has the same order as in the products of a Decoder, for any m. Forward passes set
     * it. */
    int ordered;
} Gemm;

/* A weight matrix [n, k] in the layout for products with few rows. */
typedef struct {
    Num *data;
    int n, k;
} Packed;

/* An RMSNorm of `groups` vectors of n numbers, from offset 0 of each row of x; rows are ld apart. */
typedef struct {
    const void *x; /* of rmsnorm float, the residual stream; of head_norm Num */
    const Num *w;  /* [n] */
    int rows, groups, n, ld;
    float eps;
} Norm;

/* The positions of rows, and the table of angles by position. */
typedef struct {
    const int32_t *pos;           /* [rows] */
    const float *cosines, *sines; /* [position][dim/2] */
    int rows;
} Rotation;

/* What attention read and wrote. */
typedef struct {
    const Num *qkv, *out; /* out: [rows][heads*dim] */
    const float *lse;     /* [rows][heads] */
} Attended;

typedef struct {
    const float *z; /* [rows][vocab] */
    const int32_t *target;
    int rows, vocab;
} Logits;

/* Adjacent parameters, and the state of the optimizer for them. */
typedef struct {
    Num *p;
    float *master; /* the fp32 weights that p is rounded from; NULL where p is fp32 or lean */
    float *g;
    void *m, *v;
    size_t n;
} AdamSlice;

typedef struct {
    double lr, beta1, beta2, eps, decay, scale; /* scale: of the gradient (clipping) */
    double correct1, correct2;                  /* 1 - beta^step */
    int lean;      /* no master; m and v are Num, and all three are rounded stochastically */
    uint64_t seed; /* of the stochastic rounding; depends on step and tensor */
} AdamStep;

/* Exchange of arrays between ranks; model/core/ranks.h says what the members do. `status` reports
 * their failures. */
enum { COLLECTIVE_ID_BYTES = 128 };
typedef struct {
    /* id: [COLLECTIVE_ID_BYTES]; rank 0 makes it for all ranks */
    int (*new_id)(void *id, Error *err);
    /* all ranks call it at the same time */
    int (*join)(const void *id, int rank, int n, Error *err);
    void (*leave)(void);
    void (*all_reduce)(float *x, size_t n);
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
    /* Zeroed, 64-byte aligned (CUDA: 256 bytes). The CPU commits memory when it is first used. */
    void *(*alloc)(size_t bytes);
    void (*release)(void *p); /* NULL is allowed */
    void (*copy)(void *to, const void *from, size_t bytes);
    void (*zero)(void *p, size_t bytes);
    /* Host memory may be reused on return. */
    void (*upload)(void *to, const void *host, size_t bytes);
    void (*download)(void *host, const void *from,
                     size_t bytes);                     /* waits for all operations before it */
    void (*load)(Num *to, const float *host, size_t n); /* rounds to nearest, ties to even */
    void (*store)(float *host, const Num *from, size_t n);
    /* Waits. Returns 0, or -1 with the first failure since the last call, which it clears. */
    int (*status)(Error *err);
    int (*memory)(size_t *free_bytes, size_t *total_bytes, Error *err);

    /* ---- passes over a batch ---- */
    void (*gemm)(const Gemm *g);
    void (*bias_grad)(float *db, const Num *dy, int rows, int n); /* adds to db */
    void (*add)(Num *y, const Num *x, size_t n);                  /* y += x */

    /* RMSNorm of whole rows of the residual stream: groups is 1, and ld is n. */
    void (*rmsnorm)(Num *y, const Norm *x);
    /* dx is the gradient, or with `add` dx += the gradient; dx may be dy. dw, unless NULL, is added
     * to. */
    void (*rmsnorm_grad)(Num *dx, int add, float *dw, const Num *dy, const Norm *x);
    /* RMSNorm of q or k heads. y is laid out as x and may be x. */
    void (*head_norm)(Num *y, const Norm *x);
    /* dx is the gradient and may be dy. dw, unless NULL, is added to. */
    void (*head_norm_grad)(Num *dx, float *dw, const Num *dy, const Norm *x);

    /* Rotate the q and k heads in place. sign -1 is the inverse. */
    void (*rope)(Num *qkv, const Rotation *r, HeadShape s, float sign);

    /* Causal attention within each sequence, scaled by dim^-0.5. out is [rows][heads*dim], lse is
     * [rows][heads]. */
    void (*attention)(Num *out, float *lse, const Num *qkv, const BatchView *b, HeadShape s);
    void (*attention_grad)(Num *dqkv, const Num *dout, const Attended *a, const BatchView *b,
                           HeadShape s);

    /* gate_up is [rows][2 ff], gate first. */
    void (*swiglu)(Num *act, const Num *gate_up, int rows, int ff);
    void (*swiglu_grad)(Num *dgate_up, const Num *dact, const Num *gate_up, int rows, int ff);

    void (*embed)(float *x, const Num *table, const int32_t *ids, int rows, int n);
    /* adds to dtable */
    void (*embed_grad)(float *dtable, const Num *dx, const BatchView *b, int n);

    /* logp[r] = log p(target[r]); lse is the log-sum-exp of each row. A target of -1 gives logp 0. */
    void (*cross_entropy)(float *logp, float *lse, const Logits *l);
    /* dlogits = weight (onehot - p), which may overwrite the logits. Row r begins at the same byte
     * as the row of logits, so rows of dlogits are vocab * 4 / num apart. */
    void (*cross_entropy_grad)(Num *dlogits, const float *lse, const float *weight,
                               const Logits *l);

    double (*sum_squares)(const float *x, size_t n);      /* waits */
    void (*adamw)(const AdamSlice *a, const AdamStep *s); /* updates p and sets g to 0 */

    /* ---- decoding on the CPU: the result of a row does not depend on the other rows ---- */
    void (*pack)(Packed *p, const Num *w, int n, int k); /* the caller releases p->data */
    /* y [rows][n] = x W^T, or with `add` y += x W^T, where x is [rows][k]. */
    void (*matmul_packed)(Num *y, const Num *x, const Packed *w, int rows, int add);
    /* Call body(ctx, part, first, rows) in parallel for parts of the rows, at most parts() of them. */
    void (*parallel)(int rows, void (*body)(void *ctx, int part, int first, int rows), void *ctx);
    int (*parts)(void);

    const Collectives *collectives; /* NULL: the ranks exchange arrays through host memory */
};

/* Returns p + n, in Nums of the table. */
static inline Num *num_at(const Ops *op, const Num *p, size_t n)
{
    return (char *)p + n * (size_t)op->num;
}

#endif
