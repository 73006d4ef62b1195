/* Inside the model module: the parameters' layout, the activations of a batch, and the two passes. */
#ifndef MODEL_TRANSFORMER_H
#define MODEL_TRANSFORMER_H

#include "model/model.h"
#include "model/ops.h"

/* A named view of the flat array, as Hugging Face names and shapes it. */
typedef struct {
    char name[80];
    int rank;
    int64_t shape[2];
    size_t at, count;
    int decay;                     /* weight decay: projections, not embeddings, norms or biases */
} Tensor;

/* Offsets into the flat array. q|k|v and gate|up are contiguous: one product each. */
typedef struct {
    size_t in_norm, qkv, qkv_bias, q_norm, k_norm, o, post_norm, gate_up, down;
} LayerAt;

struct Model {
    ModelConfig c;
    const Ops *ops;
    HeadShape shape;
    float *data;                   /* parameters */
    size_t size;                   /* floats of data, padding between groups included */
    size_t parameters;
    Tensor *tensor;
    int n_tensors;
    LayerAt *layer;
    size_t embed, norm, head;      /* head == embed when tied */
    float *cosines, *sines;        /* [rope_len][head_dim/2] */
    int rope_len;
    char *config_text;             /* the config.json it was loaded from, or NULL */
    size_t config_len;
};

/* Everything but the parameters themselves: data is NULL. */
Model *model_layout(const ModelConfig *c);
void model_reserve_positions(Model *m, int positions);

/* Sequences laid end to end. target[t] is ids[t+1], -1 at the end of each. */
typedef struct {
    int rows, n, row_cap, seq_cap;
    int32_t *ids, *pos, *target;
    int *start;                    /* n+1 */
    int longest;
} TokenBatch;

void batch_pack(TokenBatch *b, const Sequence *seqs, int n);
void batch_release(TokenBatch *b);
int batch_check(const Model *m, const Sequence *seqs, int n, Error *err);
/* How many of seqs[0..n) fit one micro-batch of max_tokens; at least 1. */
int batch_fit(const Sequence *seqs, int n, int max_tokens);

typedef struct {
    float *x, *n1, *raw, *qkv, *att, *lse, *mid, *n2, *gate_up, *act; /* raw: q and k before qk_norm */
} LayerActs;

typedef struct {
    int rows, kept;                /* capacity; layers whose activations are kept: all of them, or 1 */
    LayerActs *layer;
    float *arena;
    float *out, *normed;           /* the last layer's output, and normed */
    float *logits, *logp, *logit_lse;
    int logit_rows;                /* rows of logits that fit at a time */
} Acts;

void acts_reserve(Acts *a, const Model *m, int rows, int keep_all);
void acts_release(Acts *a, const Model *m);

/* Up to a->normed; with `store`, keys and values of the (single) sequence go there too. */
void forward_hidden(Model *m, Acts *a, const TokenBatch *b, KvStore *store);
/* a->logp[t] = log p(target[t]), for all rows. */
void forward_logp(Model *m, Acts *a, const TokenBatch *b);

typedef struct {
    int rows;
    float *dx, *dn, *dqkv, *datt, *dgate_up, *dact, *arena;
} Grads;

void grads_reserve(Grads *g, const Model *m, int rows);
void grads_release(Grads *g, const Model *m);

/* After forward_logp on the same batch: adds dL/dparameters to grad, weight[t] = dL/dlogp[t]. */
void backward(Model *m, Acts *a, Grads *g, const TokenBatch *b, const float *weight, float *grad);

#endif
