/* Inside model/cuda: the kernels of a decoding step (gemv.cu, residual.cu, fresh.cu, paged.cu,
 * draw.cu) and their launchers. The structures have the layout of the device code. Activations have
 * `rows` rows, and the output of a row does not depend on the other rows. */
#ifndef MODEL_CUDA_DECODE_STEP_KERNELS_H
#define MODEL_CUDA_DECODE_STEP_KERNELS_H

#include "model/cuda/cuda_state.h"

/* ---- gemv.cu ---- */

/* A product of few rows. Each sum is one chain along k from 0, 16 products a link. It equals the
 * sum of the full pass (Gemm's `ordered`) bit for bit, for any number of rows. Three forms:
 * - sums, planes [rows][n]: low up^T if r, then x w^T;
 * - gated: out = silu(gate) up of x w^T + low up^T, where each term and their sum are rounded; with
 *   r, sums is scratch, [rows][2 n];
 * - otherwise out = scale x w^T, where r is 0. */
typedef struct {
    float *sums;
    Num *out;            /* [rows][n], or NULL */
    const Num *x, *w;    /* [rows][k]; [n][k], gated: [2 n][k], gates first */
    const Num *low, *up; /* an adapter's [rows][r] and [n][r]; gated: [2 n][r] */
    int rows, n, k, r;   /* k, r: multiples of 8; r 0: no adapter */
    int gated;
    float scale;
} Product;

/* With r, the product that computes low must be launched directly before: it waits for x. */
void cuda_product(const Product *p);

/* Copy B [n][rank] of outputs first..first + n to the columns from `column` of up, whose rows have
 * r numbers. */
void cuda_adapter_up(Num *up, const Num *b, int first, int n, int rank, int r, int column);

/* ---- residual.cu ---- */

/* x += the planes of a product, in their order (none: x = rows of the table). normed is its norm
 * with w, equal to cuda_rmsnorm bit for bit. x is fp32 and is not rounded. */
typedef struct {
    float *x;
    Num *normed;
    const float *parts; /* [planes][rows][n] */
    int planes;         /* 0 to 2 */
    const Num *table;
    const int32_t *ids; /* [rows] */
    const Num *w;
    int rows, n; /* n: a multiple of 8 */
    float eps;
} Residual;

void cuda_residual_norm(const Residual *r);

/* ---- pages ---- */

enum { KV_PAGE = 32 }; /* tokens */

/* Keys and values in pages. A page has, for every layer, the keys and then the values of every kv
 * head: KV_PAGE rows of dim numbers. */
typedef struct {
    Num *data;
    int layers, kv_heads, dim; /* dim: a multiple of 8, at most 256 */
} Pages;

static inline size_t page_nums(const Pages *p)
{
    return (size_t)p->layers * 2 * (size_t)p->kv_heads * KV_PAGE * (size_t)p->dim;
}

typedef struct {
    /* [rows]: position of the new token; -1: an idle row, for which nothing is read or written. */
    const int32_t *pos;
    const int32_t *table; /* [rows][ld]: pages */
    int ld;
} KvRows;

/* ---- fresh.cu ---- */

/* Compute the new q, k and v from the planes of q|k|v, the last of which is the product:
 * round(round(product) + C), where C is the bias, or the rounded plane of an adapter, or
 * round(round(plane) + bias). Then apply norms and rotation, equal to cuda_head_norm and cuda_rope
 * bit for bit. q goes to q, k and v go to their pages. */
typedef struct {
    Num *q;                            /* [rows][heads * dim] */
    const float *parts;                /* [planes][rows][(heads + 2 kv_heads) * dim] */
    const Num *bias, *q_norm, *k_norm; /* NULL if absent */
    const float *cosines, *sines;
    int planes, rows, heads, layer; /* planes: 1 or 2 */
    float eps;
} Fresh;

void cuda_fresh_heads(const Fresh *f, const KvRows *rows, const Pages *pages);

/* ---- paged.cu ---- */

/* Store k and v of the rows of q|k|v, at positions 0 and up. table: the pages of these rows. */
void cuda_store_prompt(const Pages *pages, const Num *qkv, const int32_t *table, int rows,
                       int heads, int layer);

/* out [rows][heads * dim] equals the last row of cuda_attention over the same sequence, bit for
 * bit. scratch: cuda_attend_scratch floats at a multiple of 16 bytes. longest: tokens of a row, at
 * most. */
size_t cuda_attend_scratch(int rows, int heads, int longest);
void cuda_attend(Num *out, const Num *q, float *scratch, const KvRows *rows, const Pages *pages,
                 int n_rows, int heads, int layer, int longest);

/* ---- draw.cu ---- */

/* The members of DrawLaw in model/core/decoder.h. */
typedef struct {
    const float *logits;
    size_t ld;              /* numbers between rows; 0: all rows draw from the same logits */
    const uint32_t *banned; /* one bit per id */
    int vocab;
    float inverse; /* of the temperature; 1 if greedy */
    int greedy, top_k;
    float top_p, min_p;
    uint32_t *cut; /* scratch: [rows][2] */
} DrawRows;

size_t cuda_draw_scratch(int rows, int vocab); /* bytes */
/* u: [rows]; ids, logp: [rows]. */
void cuda_draw(int32_t *ids, float *logp, const DrawRows *law, const double *u, void *scratch,
               int rows);

#endif
