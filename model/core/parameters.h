/* The parameters of a model: how they are laid out, named and found. */
#ifndef MODEL_CORE_PARAMETERS_H
#define MODEL_CORE_PARAMETERS_H

#include "model/core/lora.h"
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

#endif
