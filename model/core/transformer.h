/* Inside the model module: the parameters' layout, the activations of a batch, and the two passes.
 */
#ifndef MODEL_CORE_TRANSFORMER_H
#define MODEL_CORE_TRANSFORMER_H

#include "model/core/model.h"
#include "model/core/ops.h"

/* A named view of a set's array, as Hugging Face names and shapes it. */
typedef struct {
    char name[120];
    int rank;
    int64_t shape[2];
    size_t at, count;
    int decay; /* weight decay: projections, not embeddings, norms or biases */
} Tensor;

/* Parameters in one array: the model's own, or an adapter's. */
typedef struct {
    Tensor *tensor;
    int n;
    size_t size;  /* Nums of data, padding between groups included */
    size_t count; /* parameters */
    Num *data;
} ParamSet;

/* One of the projections that share an input: outputs [first, first + n). With an adapter, y +=
 * scale x A^T B^T. */
typedef struct {
    int first, n;
    int u;    /* its columns of u begin here; -1: no adapter */
    size_t b; /* B [n][rank], in the adapter's set */
} LinearPart;

/* y = x W^T + bias: q|k|v, o, gate|up or down. */
typedef struct {
    size_t weight, bias; /* in the base set */
    int has_bias, n, k;  /* W is [n][k] */
    int parts;
    LinearPart part[3];
    int u;    /* width of u = scale x A^T: rank for each part that has an adapter; 0: none */
    size_t a; /* A of those parts, one after another: [u][k] */
} Linear;

typedef struct {
    size_t in_norm, q_norm, k_norm, post_norm;
    Linear qkv, o, gate_up, down;
} LayerAt;

struct Model {
    ModelConfig c;
    const Ops *ops;
    HeadShape shape;
    ParamSet base, lora; /* lora.size 0: no adapter */
    LoraOptions lora_options;
    float lora_scale; /* alpha / rank, or alpha / sqrt(rank) */
    char *base_dir;   /* absolute; where the base was loaded from, or NULL */
    LayerAt *layer;
    size_t embed, norm, head; /* head == embed when tied */
    float *cosines, *sines;   /* [rope_len][head_dim/2], on the device */
    int rope_len;
    char *config_text; /* the config.json it was loaded from, or NULL */
    size_t config_len;
};

static inline Num *weight_at(const Model *m, size_t at)
{
    return num_at(m->ops, m->base.data, at);
}

/* Everything but the parameters themselves: data is NULL. */
Model *model_layout(const ModelConfig *c, const Ops *ops);
/* Cosines and sines of that many positions. */
void model_reserve_positions(Model *m, int positions);
size_t model_position_bytes(const Model *m, int positions);

/* The next tensor of the set; columns 0: a vector. Returns its offset. */
size_t set_add(ParamSet *s, const char *name, int64_t rows, int64_t columns, int decay);
void set_align(ParamSet *s, const Ops *op);
/* After the last tensor: the array becomes a multiple of what each rank's optimiser takes. */
void set_end(ParamSet *s, const Ops *op);
void set_release(ParamSet *s, const Ops *op);

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

/* Sequences laid end to end: in host memory, and as the operations see it. */
typedef struct {
    int rows, n, longest, runs, cap; /* cap: rows that there is room for */
    int32_t *ids, *pos, *target, *start, *order,
        *run; /* as in BatchView, one after another in `host` */
    int32_t *host, *device, *scratch;
    BatchView view;
} TokenBatch;

/* Room for any batch of so many rows; batch_pack makes it where it is missing. */
void batch_reserve(TokenBatch *b, const Ops *op, int rows);
size_t batch_bytes(int rows); /* on the device */
void batch_pack(TokenBatch *b, const Ops *op, const Sequence *seqs, int n);
void batch_release(TokenBatch *b, const Ops *op);
int batch_check(const Model *m, const Sequence *seqs, int n, Error *err);
/* How many of seqs[0..n) fit one micro-batch of max_tokens; at least 1. */
int batch_fit(const Sequence *seqs, int n, int max_tokens);

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
