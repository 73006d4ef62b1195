/* Adapters (LoRA): y = W x + scale B A x, W frozen. */
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
    double alpha; /* scale: alpha / rank, or alpha / sqrt(rank) */
    int rslora;
    unsigned targets; /* LORA_Q and so on */
    uint64_t seed;    /* of A: uniform within 1/sqrt(inputs); B is 0 */
} LoraOptions;

int model_add_lora(Model *m, const LoraOptions *o, Error *err);
const LoraOptions *model_lora(const Model *m); /* NULL: there is none */

enum { LORA_TARGETS = 7 };
const char *lora_target(int i); /* "q_proj": bit i of LoraOptions.targets */

/* Everything but the numbers: the adapter's parameters have no memory. */
int lora_layout(Model *m, const LoraOptions *o, Error *err);

#endif
