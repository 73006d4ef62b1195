/* The configuration of a model: sizes, switches and end tokens, and which of them the engine
 * runs. */
#ifndef MODEL_CORE_MODEL_CONFIG_H
#define MODEL_CORE_MODEL_CONFIG_H

#include "base/dtype.h"
#include "base/error.h"

/* The scaling of the rotary embedding to longer texts. All zeros mean no scaling. */
typedef enum { ROPE_DEFAULT, ROPE_LLAMA3, ROPE_YARN } RopeType;
typedef struct {
    RopeType type;
    float factor;
    float slow, fast; /* llama3: low_freq_factor, high_freq_factor; yarn: beta_slow, beta_fast */
    float attention;  /* yarn: attention_factor, which multiplies cosines and sines */
    int original;     /* original_max_position_embeddings */
} RopeScaling;

typedef struct {
    char model_type[16]; /* "qwen2", "qwen3" or "llama" */
    int vocab, hidden, ff, layers, heads, kv_heads, head_dim, max_position;
    float rope_theta, norm_eps;
    int tied, qkv_bias, qk_norm;
    int eos[8], n_eos, pad; /* token ids */
    RopeScaling rope;
    Dtype dtype; /* of the weights: float32, bfloat16 or float16 */
} ModelConfig;

/* The switches in which the families differ. */
typedef struct {
    const char *type, *architecture; /* model_type and architectures[0] of config.json */
    int qkv_bias, qk_norm;
} ModelFamily;

/* Returns the family with that model_type, or NULL. */
const ModelFamily *model_family(const char *type);

/* Check that the engine can run these sizes and switches. The error names `where` and the field. */
int model_config_check(const ModelConfig *c, const char *where, Error *err);

/* ---- rotary embedding: plain, or scaled as in Llama 3.1 ("llama3") and YaRN (Qwen). Formulas:
 * transformers, modeling_rope_utils.py ---- */
/* Fill inv[i], i < head_dim/2: the angle of position p is p * inv[i]. Cosines and sines are
 * multiplied by *scale, which is 1 except for yarn. The configuration was checked. */
void rope_frequencies(const ModelConfig *c, float *inv, float *scale);

/* Returns yarn's attention factor for a configuration without one. */
float rope_attention_factor(float factor);

#endif
