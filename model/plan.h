/* What a run will take, before anything is allocated. */
#ifndef MODEL_PLAN_H
#define MODEL_PLAN_H

#include "base/buffer.h"
#include "model/model.h"

typedef enum {
    PLAN_WEIGHTS,
    PLAN_ADAPTER,
    PLAN_GRADIENTS,
    PLAN_OPTIMISER,                /* masters, m and v */
    PLAN_ACTIVATIONS,
    PLAN_BACKWARD,                 /* gradients of one layer's activations */
    PLAN_LOGITS,
    PLAN_BATCH,                    /* ids and positions, the rotary embedding's tables */
    PLAN_WORKSPACE,                /* of the operations; an estimate, the rest is exact */
    PLAN_PARTS
} PlanPart;

typedef struct {
    size_t bytes[PLAN_PARTS], total;
    size_t available;              /* what is free, and what the model's weights hold if they are loaded */
    int fits;
    int max_tokens, recompute, logit_rows, lora, lean;
} MemoryPlan;

/* Of a model that may be a layout alone, where `available` bytes are free: chooses recomputation, and the tokens of a
 * micro-batch where o says 0. What is too large is no error (see fits); options that contradict each other are. */
int plan_trainer(const Model *m, const TrainerOptions *o, size_t available, MemoryPlan *out, Error *err);
/* The same from a configuration, on the memory of ops' device; lora: NULL for none. */
int plan_training(const ModelConfig *c, const Ops *ops, const LoraOptions *lora, const TrainerOptions *o, MemoryPlan *out,
                  Error *err);

/* A table of the parts in GiB. */
void plan_print(const MemoryPlan *p, Buffer *out);
/* Returns -1 with the sentence: what it takes, what there is, the flags to change. */
int plan_refuse(const MemoryPlan *p, Error *err);

const MemoryPlan *trainer_plan(const Trainer *t); /* the trainer's own */

#endif
