/* Inside the model module: the activations of a batch, and the forward and backward passes. */
#ifndef MODEL_CORE_TRANSFORMER_H
#define MODEL_CORE_TRANSFORMER_H

#include "model/core/model.h"
#include "model/core/ops.h"
#include "model/core/parameters.h"

/* ---- a batch of token sequences laid end to end, without padding ---- */

/* The batch in host memory, and as the operations see it. */
typedef struct {
    int rows, n, longest, runs, cap; /* cap: allocated rows */
    /* As in BatchView, one after another in `host`. */
    int32_t *ids, *pos, *target, *start, *order, *run;
    int32_t *host, *device, *scratch;
    BatchView view;
} TokenBatch;

/* Allocate memory for any batch of that many rows. batch_pack allocates what is missing. */
void batch_reserve(TokenBatch *b, const Ops *op, int rows);
size_t batch_bytes(int rows); /* bytes on the device */
void batch_pack(TokenBatch *b, const Ops *op, const Sequence *seqs, int n);
void batch_release(TokenBatch *b, const Ops *op);
int batch_check(const Model *m, const Sequence *seqs, int n, Error *err);
/* Returns how many of seqs[0..n) fit one micro-batch of max_tokens; at least 1. */
int batch_fit(const Sequence *seqs, int n, int max_tokens);

/* One use of a projection. */
typedef struct {
    const Linear *l;
    const Num *x; /* [rows][k] */
    Num *u;       /* scale x A^T, [rows][l->u]: the forward pass keeps it for the backward pass */
    int rows;
} LinearUse;

/* y [rows][n] = x W^T + bias (+ the adapter's part). Without a residual y is Num. With one y is
 * float, may be the residual, and the residual is added without rounding in between. */
void linear_forward(const Model *m, const LinearUse *use, const float *residual, void *y);
/* Compute u only. */
void linear_inner(const Model *m, const LinearUse *use);

/* The memory of a pass, cut from one allocation. Without a base the bytes are only counted. */
typedef struct {
    char *base;
    size_t used;
} Arena;

void *arena_take(Arena *a, size_t rows, size_t width, size_t size);

typedef struct {
    float *x, *mid; /* the residual stream: input of the layer, and after its attention */
    Num *n1, *raw, *qkv, *att, *n2, *gate_up, *act; /* raw: q and k before qk_norm */
    float *lse;
    Num *u_qkv, *u_o, *u_gate_up, *u_down; /* as linear_forward left them */
} LayerActs;

/* What a forward pass keeps for the backward pass: one layer's activations only, all, or the input
 * of each layer, from which the rest is recomputed. */
typedef enum { KEEP_ONE, KEEP_ALL, KEEP_INPUTS } KeepActs;

typedef struct {
    int rows; /* capacity */
    KeepActs keep;
    LayerActs *layer; /* [layers]; arrays that are not kept are shared by all layers */
    void *arena;
    float *out; /* output of the last layer */
    Num *normed;
    float *logp, *logit_lse;
    float *logits;
    /* Rows of logits computed at a time, and rows allocated. */
    int logit_rows, logit_cap;
} Acts;

void acts_reserve(Acts *a, const Model *m, int rows, KeepActs keep);
size_t acts_bytes(const Model *m, int rows, KeepActs keep);
void acts_release(Acts *a, const Model *m);

/* Called after the attention of each layer, while its q, k and v are still there. */
typedef void LayerDone(void *ctx, int layer, const Num *qkv, int rows);

/* Run the forward pass up to a->normed. */
void forward_hidden(Model *m, Acts *a, const TokenBatch *b, LayerDone *then, void *ctx);
/* Recompute the activations of a layer from its input. */
void recompute_layer(Model *m, Acts *a, int layer, const TokenBatch *b);

/* ---- the head: logits of all rows, or of pieces of them ---- */
/* The use of the head: log-probabilities only, or gradients in a second pass, or gradients in the
 * same pass. */
typedef enum { HEAD_FORWARD, HEAD_TWICE, HEAD_ONCE } HeadUse;
/* Returns the rows of logits held for batches of `rows`: all of them, or a piece. */
int head_rows(const Model *m, int rows, HeadUse use);
size_t head_bytes(const Model *m, int rows);
/* Set the number of rows of logits computed at a time. */
void head_reserve(Acts *a, const Model *m, int rows);
/* Set a->logp[t] = log p(target[t]) for all rows. The logits stay if all of them fit. */
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

/* The backward pass of a batch. Gradients of the trained parameters are added to grad, which has
 * the layout of their set: the adapter's if there is one, else the base's. */
typedef struct {
    Model *m;
    Acts *a;
    Grads *g;
    const TokenBatch *b;
    float *grad;
} BackwardPass;

/* dx, unless NULL, becomes the gradient of x. */
void linear_backward(const BackwardPass *p, const LinearUse *use, const Num *dy, Num *dx);
/* Store the gradient of the last hidden states in g->dn and add the gradient of the head's weights.
 * weight is dL/dlogp of the rows, in host memory. Call it after head_logp; or, with `fused`,
 * instead of it: then logp is computed where weights are not 0, piece by piece, and the logits are
 * read once. */
void head_backward(const BackwardPass *p, const float *weight, int fused);
/* Called when the gradients at `from` and above, in the trained set, are complete for this pass.
 * `from` decreases from call to call and ends at 0. */
typedef void GradsDone(void *ctx, size_t from);

/* Run the backward pass from g->dn down to the embedding. done may be NULL. */
void backward(const BackwardPass *p, GradsDone *done, void *ctx);

/* Returns the gradient at a position of the base, or NULL when the base is frozen. */
static inline float *base_grad(const BackwardPass *p, size_t at)
{
    return p->m->lora.size ? NULL : p->grad + at;
}

/* The norm of whole rows of x, the residual stream, with the weight at that position. */
static inline Norm norm_of_rows(const Model *m, const float *x, size_t weight, int rows)
{
    int n = m->c.hidden;
    return (Norm){x, weight_at(m, weight), rows, 1, n, n, m->c.norm_eps};
}

/* The norm of the q heads, or with `keys` of the k heads, of rows of q|k|v. */
static inline Norm norm_of_heads(const Model *m, const Num *qkv, const LayerAt *at, int keys,
                                 int rows)
{
    const HeadShape *s = &m->shape;
    size_t first = keys ? (size_t)s->heads * (size_t)s->dim : 0;
    return (Norm){.x = num_at(m->ops, qkv, first),
                  .w = weight_at(m, keys ? at->k_norm : at->q_norm),
                  .rows = rows,
                  .groups = keys ? s->kv_heads : s->heads,
                  .n = s->dim,
                  .ld = head_row(*s),
                  .eps = m->c.norm_eps};
}

#endif
