/* The operations of a transformer behind one table: the CPU's today, another device's later. Arrays
 * are row-major fp32; a row is a token. No operation's result depends on the number of threads: work
 * is cut by shape alone, and sums over rows run in a fixed order. Called from inside a `parallel`
 * region an operation runs on the calling thread. */
#ifndef MODEL_OPS_H
#define MODEL_OPS_H

#include <stddef.h>
#include <stdint.h>

/* A row of attention: q heads, then k heads, then v heads, each of dim floats. */
typedef struct {
    int heads, kv_heads, dim;
} HeadShape;

static inline int head_row(HeadShape s) { return (s.heads + 2 * s.kv_heads) * s.dim; }

/* Keys and values of one token sequence for all layers. How they lie is the device's
 * own: on the CPU keys in blocks of a vector's tokens, [dim][lanes], values as rows padded to a
 * multiple of 16 floats, both read with whole vectors. */
typedef struct {
    float *k, *v;
    int len, cap;                  /* tokens; cap is a multiple of 16 */
} KvStore;

/* One row of decoding attends to a shared prefix and to its own continuation. */
typedef struct {
    const KvStore *prefix;
    KvStore *own;
} KvRow;

/* A weight matrix [n, k] laid out for multiplication by few rows: panels of some outputs. */
typedef struct {
    float *data;
    int n, k;
} Packed;

typedef struct {
    double lr, beta1, beta2, eps, decay, scale; /* scale: of the gradient (clipping) */
    double correct1, correct2;                  /* 1 - beta^step */
} AdamStep;

typedef struct {
    const char *name;

    float *(*alloc)(size_t count); /* zeroed, 64-byte aligned; memory is touched when first used */
    void (*release)(float *p);
    void (*copy)(float *to, const float *from, size_t count);
    void (*zero)(float *p, size_t count);

    /* c = op(a) op(b) + beta c; op(a) is [m,k], op(b) [k,n]; ta: a is stored [k,m]; tb: b is stored [n,k]. */
    void (*gemm)(int ta, int tb, int m, int n, int k, const float *a, int lda, const float *b, int ldb, float beta,
                 float *c, int ldc);
    void (*add_bias)(float *y, const float *bias, int rows, int n);
    void (*bias_grad)(float *db, const float *dy, int rows, int n);

    /* Each row holds `groups` vectors of n, from offset 0; rows are ld apart. */
    void (*rmsnorm)(float *y, const float *x, const float *w, int rows, int groups, int n, int ld, float eps);
    /* dx += (add) or = the gradient; dx may be dy. dw is added to. */
    void (*rmsnorm_grad)(float *dx, int add, float *dw, const float *dy, const float *x, const float *w, int rows,
                         int groups, int n, int ld, float eps);

    /* Rotate the q and k heads in place; cosines and sines are [position][dim/2]; sign -1 goes back. */
    void (*rope)(float *qkv, const int32_t *pos, const float *cosines, const float *sines, int rows, HeadShape s,
                 float sign);

    /* Causal attention within each of n sequences, rows start[i] to start[i+1]; lse is [rows][heads]. */
    void (*attention)(float *out, float *lse, const float *qkv, const int *start, int n, HeadShape s);
    void (*attention_grad)(float *dqkv, const float *dout, const float *out, const float *lse, const float *qkv,
                           const int *start, int n, HeadShape s);

    void (*swiglu)(float *act, const float *gate_up, int rows, int ff);
    void (*swiglu_grad)(float *dgate_up, const float *dact, const float *gate_up, int rows, int ff);

    void (*embed)(float *x, const float *table, const int32_t *ids, int rows, int n);
    void (*embed_grad)(float *dtable, const float *dx, const int32_t *ids, int rows, int n);

    /* logp[r] and the log-sum-exp of each row; a target of -1 gives 0. */
    void (*cross_entropy)(float *logp, float *lse, const float *logits, const int32_t *target, int rows, int vocab);
    /* logits become weight * (onehot - p). */
    void (*cross_entropy_grad)(float *logits, const float *lse, const int32_t *target, const float *weight, int rows,
                               int vocab);

    double (*sum_squares)(const float *x, size_t n);
    void (*adamw)(float *p, float *g, float *m, float *v, size_t n, const AdamStep *s); /* g becomes 0 */

    /* ---- decoding: a row's result does not depend on the rows beside it ---- */
    void (*pack)(Packed *p, const float *w, int n, int k);      /* data: alloc */
    void (*matmul_packed)(float *y, const float *x, const Packed *w, int rows, int add);
    /* Store the k and v of rows of qkv at tokens at..at+rows of `to`. */
    void (*kv_put)(KvStore *to, int layer, int at, const float *qkv, int rows, HeadShape s);
    /* The keys and values of the row itself are in the store already; scratch: heads/kv_heads * (both caps). */
    void (*attention_cached)(float *out, const float *qkv, const KvRow *row, int rows, int layer, HeadShape s,
                             float *scratch);
    /* body(ctx, part, first, rows) for parts of the rows, side by side; parts() of them at most. */
    void (*parallel)(int rows, void (*body)(void *ctx, int part, int first, int rows), void *ctx);
    int (*parts)(void);
} Ops;

const Ops *ops_cpu(void);

/* Of the CPU's table, in files of their own. */
void cpu_attention(float *out, float *lse, const float *qkv, const int *start, int n, HeadShape s);
void cpu_attention_grad(float *dqkv, const float *dout, const float *out, const float *lse, const float *qkv,
                        const int *start, int n, HeadShape s);
void cpu_pack(Packed *p, const float *w, int n, int k);
void cpu_matmul_packed(float *y, const float *x, const Packed *w, int rows, int add);
void cpu_kv_put(KvStore *to, int layer, int at, const float *qkv, int rows, HeadShape s);
void cpu_attention_cached(float *out, const float *qkv, const KvRow *row, int rows, int layer, HeadShape s,
                          float *scratch);
int cpu_threads(void);             /* QUERN_THREADS, or the cores that are online */

#endif
