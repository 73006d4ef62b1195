/* Inside the model module: the parameters' layout, the activations of a batch, and the two passes.
 */
#ifndef MODEL_CORE_TRANSFORMER_H
#define MODEL_CORE_TRANSFORMER_H

#include "model/core/batch.h"
#include "model/core/parameters.h"

/* y [rows][n] = x W^T + bias (+ the adapter's part), x [rows][k]. u: [rows][l->u], kept for the way
 * back. Without a residual y is Num; with one y is float, and the residual is added with no
 * rounding between; y may be it. */
void linear_forward(const Model *m, const Linear *l, const Num *x, int rows, Num *u,
                    const float *residual, void *y);
/* u = scale x A^T alone. */
void linear_inner(const Model *m, const Linear *l, const Num *x, int rows, Num *u);
/* dx (unless NULL) = the gradient of x. Gradients of the trained parameters are added to grad,
 * which is laid out as their set: the adapter's where there is one, else the base's. du: scratch,
 * [rows][l->u]. */
void linear_backward(const Model *m, const Linear *l, const Num *dy, const Num *x, const Num *u,
                     Num *du, int rows, Num *dx, float *grad);

/* Memory of a pass, cut from one allocation; with no base the bytes are only counted. */
typedef struct {
    char *base;
    size_t used;
} Arena;

void *arena_take(Arena *a, size_t rows, size_t width, size_t size);

typedef struct {
    float *x, *mid; /* the residual stream: the layer's input, and after its attention */
    Num *n1, *raw, *qkv, *att, *n2, *gate_up, *act; /* raw: q and k before qk_norm */
    float *lse;
    Num *u_qkv, *u_o, *u_gate_up, *u_down; /* as linear_forward left them */
} LayerActs;

/* What of a pass is kept for the way back: nothing (one layer's activations), all, or each layer's
 * input, of which the rest is made again. */
typedef enum { KEEP_ONE, KEEP_ALL, KEEP_INPUTS } KeepActs;

typedef struct {
    int rows; /* capacity */
    KeepActs keep;
    LayerActs *layer; /* [layers]; what is not kept is one array for all */
    void *arena;
    float *out; /* the last layer's output */
    Num *normed;
    float *logp, *logit_lse;
    float *logits;
    int logit_rows,
        logit_cap; /* rows of logits that are made at a time, and that there is room for */
} Acts;

void acts_reserve(Acts *a, const Model *m, int rows, KeepActs keep);
size_t acts_bytes(const Model *m, int rows, KeepActs keep);
void acts_release(Acts *a, const Model *m);

/* After each layer's attention, while its q, k and v are there. */
typedef void LayerDone(void *ctx, int layer, const Num *qkv, int rows);

/* Up to a->normed. */
void forward_hidden(Model *m, Acts *a, const TokenBatch *b, LayerDone *then, void *ctx);
/* A layer's activations again, from its input. */
void forward_again(Model *m, Acts *a, int layer, const TokenBatch *b);

/* ---- the head: logits of all rows, or of pieces of them ---- */
/* Log-probabilities alone; then gradients, in a second pass or in the same. */
typedef enum { HEAD_FORWARD, HEAD_TWICE, HEAD_ONCE } HeadUse;
/* How many rows of logits are held for batches of `rows`: all, or a piece. */
int head_rows(const Model *m, int rows, HeadUse use);
size_t head_bytes(const Model *m, int rows);
/* From now on so many at a time. */
void head_reserve(Acts *a, const Model *m, int rows);
/* a->logp[t] = log p(target[t]), for all rows; logits stay where all of them fit. */
void head_logp(Model *m, Acts *a, const TokenBatch *b);
/* forward_hidden and head_logp. */
void forward_logp(Model *m, Acts *a, const TokenBatch *b);

typedef struct {
    int rows;
    Num *dx, *dn, *dqkv, *datt, *dgate_up, *dact, *du;
    float *weight; /* dL/dlogp of the rows */
    void *arena;
} Grads;

void grads_reserve(Grads *g, const Model *m, int rows);
size_t grads_bytes(const Model *m, int rows);
void grads_release(Grads *g, const Model *m);

/* The gradient of the last hidden states into g->dn, that of the head's weights added to grad.
 * weight: dL/dlogp of the rows, in host memory. After head_logp; or, with `fused`, instead of it:
 * then logp is made where weights are not 0, piece by piece, and the logits are gone through once.
 */
void head_backward(Model *m, Acts *a, Grads *g, const TokenBatch *b, const float *weight, int fused,
                   float *grad);
/* Gradients at `from` and above in the trained set have all that the pass adds to them: with ever
 * lower places, at last 0. */
typedef void GradsDone(void *ctx, size_t from);

/* From g->dn down to the embedding. done: NULL, or called on the way. */
void backward(Model *m, Acts *a, Grads *g, const TokenBatch *b, float *grad, GradsDone *done,
              void *ctx);

/* grad + at in the base's layout, or NULL where the base is frozen. */
static inline float *base_grad(const Model *m, float *grad, size_t at)
{
    return m->lora.size ? NULL : grad + at;
}

#endif
