/* The configuration of a model: sizes, switches and end tokens, and which of them the engine can run. */
#ifndef MODEL_CORE_MODEL_CONFIG_H
#define MODEL_CORE_MODEL_CONFIG_H

#include "base/error.h"

/* How the rotary embedding is stretched to longer texts (model/core/rope.h has the formulas);
 * zeros: not at all. */
typedef enum { ROPE_DEFAULT, ROPE_LLAMA3, ROPE_YARN } RopeType;
typedef struct {
    RopeType type;
    float factor;
    float slow, fast; /* llama3: low_freq_factor, high_freq_factor; yarn: beta_slow, beta_fast */
    float attention;  /* yarn: attention_factor, by which cosines and sines are multiplied */
    int original;     /* original_max_position_embeddings */
} RopeScaling;

typedef struct {
    char model_type[16]; /* "qwen2", "qwen3" or "llama" */
    int vocab, hidden, ff, layers, heads, kv_heads, head_dim, max_position;
    float rope_theta, norm_eps;
    int tied, qkv_bias, qk_norm;
    int eos[8], n_eos, pad; /* ids */
    RopeScaling rope;
    int dtype; /* of the weights as config.json has it: ST_F32, ST_BF16 or ST_F16
                  (model/files/safetensors.h) */
} ModelConfig;

/* What the families of models differ in. */
typedef struct {
    const char *type, *architecture; /* model_type and architectures[0] of config.json */
    int qkv_bias, qk_norm;
} ModelFamily;

/* Returns the family of that model_type, or NULL. */
const ModelFamily *model_family(const char *type);

/* Sizes and switches that the engine can run; anything else is refused by the field's name. */
int model_config_check(const ModelConfig *c, const char *where, Error *err);

#endif
