/* The parameters of a model: layout, names and positions. */
#ifndef MODEL_CORE_PARAMETERS_H
#define MODEL_CORE_PARAMETERS_H

#include "model/core/lora.h"
#include "model/core/model.h"
#include "model/core/ops.h"

/* A named view of a set's array, with the name and shape that Hugging Face uses. */
typedef struct {
    char name[120];
    int rank;
    int64_t shape[2];
    size_t at, count;
    int decay; /* has weight decay: projections, but not embeddings, norms or biases */
} Tensor;

/* The parameters of a model, or of an adapter, in one array. */
typedef struct {
    Tensor *tensor;
    int n;
    size_t size;  /* Nums of data, including padding between groups */
    size_t count; /* number of parameters */
    Num *data;
} ParamSet;

/* One of the projections that share an input: outputs [first, first + n). An adapter adds scale x
 * A^T B^T. */
typedef struct {
    int first, n;
    int u;    /* first of its columns in u; -1: no adapter */
    size_t b; /* B, [n][rank], in the adapter's set */
} LinearPart;

/* y = x W^T + bias for q|k|v, o, gate|up or down. */
typedef struct {
    size_t weight, bias; /* positions in the base set */
    int has_bias, n, k;  /* W is [n][k] */
    int parts;
    LinearPart part[3];
    int u;    /* columns of u = scale x A^T: rank for each part with an adapter; 0: none */
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
    ParamSet base, lora; /* lora.size is 0 without an adapter */
    LoraOptions lora_options;
    float lora_scale; /* alpha / rank, or alpha / sqrt(rank) */
    char *base_dir;   /* absolute path that the base was loaded from, or NULL */
    LayerAt *layer;
    size_t embed, norm, head; /* head == embed when tied */
    float *cosines, *sines;   /* [rope_len][head_dim/2], on the device */
    int rope_len;
    char *config_text; /* the config.json that it was loaded from, or NULL */
    size_t config_len;
};

static inline Num *weight_at(const Model *m, size_t at)
{
    return num_at(m->ops, m->base.data, at);
}

/* Create a model whose parameters have no memory: data is NULL. */
Model *model_layout(const ModelConfig *c, const Ops *ops);
/* Compute cosines and sines of at least that many positions. */
void model_reserve_positions(Model *m, int positions);
size_t model_position_bytes(const Model *m, int positions);

/* The rotation of rows at those positions, for which cosines and sines are there. */
static inline Rotation model_rotation(const Model *m, const int32_t *pos, int rows)
{
    return (Rotation){pos, m->cosines, m->sines, rows};
}

/* Append a tensor to the set; columns 0 means a vector. Returns its position. */
size_t set_add(ParamSet *s, const char *name, int64_t rows, int64_t columns, int decay);
void set_align(ParamSet *s, const Ops *op);
/* End the set: pad the array to a multiple of the slices of all ranks. */
void set_end(ParamSet *s, const Ops *op);

#endif
