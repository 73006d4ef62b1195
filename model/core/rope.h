/* Inverse frequencies of the rotary embedding: plain, or scaled as in Llama 3.1 ("llama3") and YaRN
 * (Qwen). Formulas: transformers, modeling_rope_utils.py. */
#ifndef MODEL_CORE_ROPE_H
#define MODEL_CORE_ROPE_H

#include "model/core/model.h"

/* Fill inv[i], i < head_dim/2: the angle of position p is p * inv[i]. Cosines and sines are
 * multiplied by *scale, which is 1 except for yarn. The configuration was checked. */
void rope_frequencies(const ModelConfig *c, float *inv, float *scale);

/* Returns yarn's attention factor for a configuration without one. */
float rope_attention_factor(float factor);

#endif
