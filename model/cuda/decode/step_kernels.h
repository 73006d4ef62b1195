/* Inside model/cuda: the kernels of a decoding step (gemv.cu, residual.cu, fresh.cu, paged.cu,
 * draw.cu) and their launchers. The structures are those of the device code, number by number.
 * Activations have `rows` rows; what a row gives does not depend on the other rows. */
#ifndef MODEL_CUDA_DECODE_STEP_KERNELS_H
#define MODEL_CUDA_DECODE_STEP_KERNELS_H

#include "model/cuda/cuda_state.h"

/* ---- gemv.cu ---- */

/* Each sum is one chain along k from 0, 16 products a link: to the bit what the full pass has
 * (Gemm's `ordered`), however many rows there are. One of: sums, planes [rows][n]: low up^T if r,
 * then x w^T; out = silu(gate) up if gated, of x w^T + low up^T, each rounded and their sum again;
 * with r, sums are scratch, [rows][2 n]; out = scale x w^T: r is 0. */
typedef struct {
    float *sums;
    Num *out;            /* [rows][n], or NULL */
    const Num *x, *w;    /* [rows][k]; [n][k], gated: [2 n][k], gates first */
    const Num *low, *up; /* an adapter's [rows][r] and [n][r], gated: [2 n][r] */
    int rows, n, k, r;   /* k, r: multiples of 8; r 0: no adapter */
    int gated;
    float scale;
} Product;

/* With r, what is launched just before must be the product that made low: it says when x is there.
 */
void cuda_product(const Product *p);

/* B [n][rank] of outputs first..first + n to columns column.. of up, whose rows are r long. */
void cuda_adapter_up(Num *up, const Num *b, int first, int n, int rank, int r, int column);

/* ---- residual.cu ---- */

/* x += a product's planes, in their order (none: x = rows of the table); normed = its norm with w,
 * as cuda_rmsnorm has it bit by bit. x is fp32 and nothing rounds it. */
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

/* Keys and values in pages: for every layer the keys, then the values, of every kv head, KV_PAGE
 * rows of dim. */
typedef struct {
    Num *data;
    int layers, kv_heads, dim; /* dim: a multiple of 8, at most 256 */
} Pages;

static inline size_t page_nums(const Pages *p)
{
    return (size_t)p->layers * 2 * (size_t)p->kv_heads * KV_PAGE * (size_t)p->dim;
}

typedef struct {
    const int32_t
        *pos; /* [rows]: of the new token; -1: an idle row, of which nothing is read or written */
    const int32_t *table; /* [rows][ld]: pages */
    int ld;
} KvRows;

/* ---- fresh.cu ---- */

/* From the planes of q|k|v, the last of which is the product: round(round(product) + C), where C is
 * the bias, or an adapter's plane, rounded, or round(round(plane) + bias); then norms and rotation
 * as cuda_head_norm and cuda_rope have them bit by bit. q to q, k and v to their pages. */
typedef struct {
    Num *q;                            /* [rows][heads * dim] */
    const float *parts;                /* [planes][rows][(heads + 2 kv_heads) * dim] */
    const Num *bias, *q_norm, *k_norm; /* or NULL */
    const float *cosines, *sines;
    int planes, rows, heads, layer; /* planes: 1 or 2 */
    float eps;
} Fresh;

void cuda_fresh_heads(const Fresh *f, const KvRows *rows, const Pages *pages);

/* ---- paged.cu ---- */

/* k and v of rows of q|k|v, positions 0 and on. table: of these rows' pages. */
void cuda_store_prompt(const Pages *pages, const Num *qkv, const int32_t *table, int rows,
                       int heads, int layer);

/* out [rows][heads * dim], to the bit what cuda_attention makes of the last row of the same
 * sequence. scratch: cuda_attend_scratch floats at a multiple of 16 bytes. longest: of a row's
 * tokens at most. */
size_t cuda_attend_scratch(int rows, int heads, int longest);
void cuda_attend(Num *out, const Num *q, float *scratch, const KvRows *rows, const Pages *pages,
                 int n_rows, int heads, int layer, int longest);

/* ---- draw.cu ---- */

/* As DrawLaw of model/core/draw.h. */
typedef struct {
    const float *logits;
    size_t ld;              /* numbers between rows; 0: all rows draw from one */
    const uint32_t *banned; /* a bit for each id */
    int vocab;
    float inverse; /* of the temperature; 1 when greedy */
    int greedy, top_k;
    float top_p, min_p;
    uint32_t *cut; /* scratch: [rows][2] */
} DrawRows;

size_t cuda_draw_scratch(int rows, int vocab); /* bytes */
/* u: [rows]; ids, logp: [rows]. */
void cuda_draw(int32_t *ids, float *logp, const DrawRows *law, const double *u, void *scratch,
               int rows);

#endif
