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
    size_t available;              /* without the model's weights */
    int fits;
    int max_tokens, recompute, logit_rows, lora, lean;
} MemoryPlan;

/* Of a model that need not be loaded (weights that are, are not asked for again): chooses recomputation, and the tokens of a
 * micro-batch where they are 0. The error is of options that contradict each other; see `fits`. */
int plan_trainer(const Model *m, const TrainerOptions *o, size_t available, MemoryPlan *out, Error *err);
/* The same from a configuration alone; lora: NULL for none. */
int plan_training(const ModelConfig *c, const Ops *ops, const LoraOptions *lora, const TrainerOptions *o, MemoryPlan *out,
                  Error *err);

/* A table of the parts in GiB. */
void plan_print(const MemoryPlan *p, Buffer *out);
/* -1, and the sentence: what it takes, what there is, the flags to change. */
int plan_refuse(const MemoryPlan *p, Error *err);

const MemoryPlan *trainer_plan(const Trainer *t);

#endif
