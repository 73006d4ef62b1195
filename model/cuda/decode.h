/* Inside model/cuda: the kernels of a decoding step (gemv.cu, paged.cu, draw.cu) and their launchers. The structures are those
 * of the device code, number by number. Activations have `rows` rows; what a row gives does not depend on the other rows. */
#ifndef MODEL_CUDA_DECODE_H
#define MODEL_CUDA_DECODE_H

#include "model/cuda/state.h"

/* ---- gemv.cu ---- */

/* out = low up^T + x w^T, fp32, in `splits` parts along k, which whoever reads them adds: [splits][rows][n]. */
typedef struct {
    float *out;
    const Num *x, *w;              /* [rows][k]; [n][k] */
    const Num *low, *up;           /* an adapter's [rows][r] and [n][r]; r 0: none */
    int rows, n, k, r;             /* k: a multiple of 8; r: of ADAPTER_ALIGN */
    int splits;                    /* cuda_product_splits; 1 when gated */
    int gated;                     /* w is [2 n][k], gates first: out is silu(gate) up, [rows][n] Nums */
    int rounds;                    /* low up^T is rounded to a Num before the rest is added, as the full pass does */
    const Num *bias;               /* [n]: then added to it, and rounded again; or NULL. With rounds and r, not gated */
} Product;

enum { ADAPTER_ALIGN = 64 };

int cuda_product_splits(int n, int k); /* of n and k alone: it decides the order of sums */
void cuda_product(const Product *p);

/* low = scale times the parts of x A^T, [splits][rows][r]. */
void cuda_adapter_low(Num *low, const float *parts, int splits, int rows, int r, float scale);
/* B [n][rank] of outputs first..first + n to columns column.. of up, whose rows are r long. */
void cuda_adapter_up(Num *up, const Num *b, int first, int n, int rank, int r, int column);

/* x += the parts of a product (splits 0: x = rows of the table); normed = its norm with w. x is fp32 and nothing rounds it. */
typedef struct {
    float *x;
    Num *normed;
    const float *parts;            /* [splits][rows][n] */
    int splits;
    const Num *table;
    const int32_t *ids;            /* [rows] */
    const Num *w;
    int rows, n;                   /* n: a multiple of 8 */
    float eps;
} Residual;

void cuda_residual_norm(const Residual *r);

/* ---- paged.cu ---- */

enum { KV_PAGE = 32 };             /* tokens */

/* Keys and values in pages: for every layer the keys, then the values, of every kv head, KV_PAGE rows of dim. */
typedef struct {
    Num *data;
    int layers, kv_heads, dim;     /* dim: a multiple of 8, at most 256 */
} Pages;

static inline size_t page_nums(const Pages *p) { return (size_t)p->layers * 2 * (size_t)p->kv_heads * KV_PAGE * (size_t)p->dim; }

typedef struct {
    const int32_t *pos;            /* [rows]: of the new token; -1: an idle row, of which nothing is read or written */
    const int32_t *table;          /* [rows][ld]: pages */
    int ld;
} KvRows;

/* From the parts of q|k|v: bias, norms, rotation; q to q, k and v to their pages. */
typedef struct {
    Num *q;                        /* [rows][heads * dim] */
    const float *parts;            /* [splits][rows][(heads + 2 kv_heads) * dim] */
    const Num *bias, *q_norm, *k_norm; /* or NULL */
    const float *cosines, *sines;
    int splits, rows, heads, layer;
    float eps;
} Fresh;

void cuda_fresh_heads(const Fresh *f, const KvRows *rows, const Pages *pages);
/* k and v of rows of q|k|v, positions 0 and on. table: of these rows' pages. */
void cuda_store_prompt(const Pages *pages, const Num *qkv, const int32_t *table, int rows, int heads, int layer);

/* out [rows][heads * dim]. scratch: cuda_attend_scratch floats. longest: of a row's tokens at most. */
size_t cuda_attend_scratch(int rows, int heads, int dim);
void cuda_attend(Num *out, const Num *q, float *scratch, const KvRows *rows, const Pages *pages, int n_rows, int heads, int layer,
                 int longest);

/* ---- draw.cu ---- */

/* As DrawLaw of model/draw.h. */
typedef struct {
    const float *logits;
    size_t ld;                     /* numbers between rows; 0: all rows draw from one */
    const uint32_t *banned;        /* a bit for each id */
    int vocab;
    float inverse;                 /* of the temperature; 1 when greedy */
    int greedy, top_k;
    float top_p, min_p;
    uint32_t *cut;                 /* scratch: [rows][2] */
} DrawRows;

size_t cuda_draw_scratch(int rows, int vocab); /* bytes */
/* u: [rows]; ids, logp: [rows]. */
void cuda_draw(int32_t *ids, float *logp, const DrawRows *law, const double *u, void *scratch, int rows);

#endif
