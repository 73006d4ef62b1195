/* Inverse frequencies of the rotary embedding: plain, or stretched as Llama 3.1 ("llama3") and YaRN
 * (Qwen) do it. Formulas: transformers, modeling_rope_utils.py. */
#ifndef MODEL_CORE_ROPE_H
#define MODEL_CORE_ROPE_H

#include "model/core/model.h"

/* inv[i], i < head_dim/2: the angle of position p is p * inv[i]. Cosines and sines are to be
 * multiplied by *scale (1 but for yarn). Of a checked configuration. */
void rope_frequencies(const ModelConfig *c, float *inv, float *scale);

/* yarn's attention factor where the configuration gives none. */
float rope_attention_factor(float factor);

#endif
