/* The memory of a training or sampling run, computed before anything is allocated. */
#ifndef MODEL_MEMORY_PLAN_H
#define MODEL_MEMORY_PLAN_H

#include "base/buffer.h"
#include "model/core/lora.h"
#include "model/core/ops.h"

typedef enum { RECOMPUTE_AUTO, RECOMPUTE_NO, RECOMPUTE_YES } Recompute;

typedef struct {
    /* Tokens of one micro-batch; 0: chosen by memory. Sequences are packed, and attention stays
     * within each. */
    int max_tokens;
    /* Recompute the activations of a layer in the backward pass. Auto: only if they do not fit
     * otherwise. */
    Recompute recompute;
    /* no fp32 masters; m and v have the weights' type, rounded stochastically; not on the CPU */
    int lean;
    /* TokenWeights do not depend on logp, which is then NULL. The head takes one pass. */
    int fixed_weights;
} TrainerOptions;

typedef enum {
    PLAN_WEIGHTS,
    PLAN_ADAPTER,
    PLAN_GRADIENTS,
    PLAN_OPTIMIZER, /* masters, m and v */
    PLAN_ACTIVATIONS,
    PLAN_BACKWARD, /* gradients of the activations of one layer */
    PLAN_LOGITS,
    PLAN_BATCH,     /* ids, positions and the tables of the rotary embedding */
    PLAN_WORKSPACE, /* of the operations; an estimate, the other parts are exact */
    PLAN_PARTS
} PlanPart;

typedef struct {
    size_t bytes[PLAN_PARTS], total;
    size_t available; /* free memory, plus the weights if they are loaded */
    int fits;
    int max_tokens, recompute, logit_rows, lora, lean;
} MemoryPlan;

/* Plan a training run with `available` free bytes; m may be a layout without memory. It chooses
 * recomputation, and the tokens of a micro-batch if o->max_tokens is 0. A run that does not fit is
 * not an error (see fits); contradicting options are. */
int plan_trainer(const Model *m, const TrainerOptions *o, size_t available, MemoryPlan *out,
                 Error *err);

/* A model that is not created: its plans take the memory of the device of ops. */
typedef struct {
    const ModelConfig *c;
    const Ops *ops;
    const LoraOptions *lora; /* NULL: no adapter */
} PlannedModel;

/* As plan_trainer. */
int plan_training(const PlannedModel *p, const TrainerOptions *o, MemoryPlan *out, Error *err);

/* Print a table of the parts in GiB. */
void plan_print(const MemoryPlan *p, Buffer *out);
/* Returns -1 with the needed memory, the free memory and the flags to change. */
int plan_refuse(const MemoryPlan *p, Error *err);

/* A sampling run, in bytes; DecoderMemory in model/core/decoder.h defines the members of the
 * decoder. */
typedef struct {
    /* weights: with the adapter; available: free before they are loaded */
    size_t weights, available;
    size_t decoder, spare, room, held, token;
    int64_t tokens;
    /* All rows fit at the same time, after prompts of `prompt` tokens. Otherwise some wait. */
    int rows, prompt, max_new, fits;
} SamplingPlan;

/* Find the longest prompt with which `rows` rows of max_new tokens fit at the same time, or plan
 * for a prompt of one token if none fits. max_new is less than the positions of the model. */
int plan_sampling(const PlannedModel *p, int rows, int max_new, SamplingPlan *out, Error *err);
void plan_print_sampling(const SamplingPlan *p, int max_position, Buffer *out);

#endif
