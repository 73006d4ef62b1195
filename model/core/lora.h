/* Adapters (LoRA): y = W x + scale B A x, where W is frozen. */
#ifndef MODEL_CORE_LORA_H
#define MODEL_CORE_LORA_H

#include <stdint.h>

#include "model/core/model.h"

enum {
    LORA_Q = 1,
    LORA_K = 2,
    LORA_V = 4,
    LORA_O = 8,
    LORA_GATE = 16,
    LORA_UP = 32,
    LORA_DOWN = 64,
    LORA_ALL = 127
};

typedef struct {
    int rank;
    double alpha; /* the scale is alpha / rank, or alpha / sqrt(rank) with rslora */
    int rslora;
    unsigned targets; /* LORA_Q and so on, or-ed */
    uint64_t seed;    /* of A, uniform within 1/sqrt(inputs); B is 0 */
} LoraOptions;

int model_add_lora(Model *m, const LoraOptions *o, Error *err);
const LoraOptions *model_lora(const Model *m); /* NULL when the model has no adapter */

enum { LORA_TARGETS = 7 };
const char *lora_target(int i); /* "q_proj": the name of bit i of LoraOptions.targets */

/* Lay out the adapter's parameters without allocating memory for them. */
int lora_layout(Model *m, const LoraOptions *o, Error *err);

#endif
