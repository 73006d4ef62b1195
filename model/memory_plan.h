/* What a run will take, before anything is allocated. */
#ifndef MODEL_MEMORY_PLAN_H
#define MODEL_MEMORY_PLAN_H

#include "base/buffer.h"
#include "model/core/lora.h"
#include "model/core/ops.h"

typedef enum { RECOMPUTE_AUTO, RECOMPUTE_NO, RECOMPUTE_YES } Recompute;

typedef struct {
    int max_tokens; /* of one micro-batch (sequences are packed, attention stays within each); 0: by
                       memory */
    Recompute recompute; /* activations of a layer made again on the way back; auto: if they do not
                            fit otherwise */
    int lean; /* no fp32 masters; m and v as the weights, rounded stochastically. Not on the CPU */
    int fixed_weights; /* TokenWeights do not depend on logp, which is NULL: the head takes one pass
                        */
} TrainerOptions;

typedef enum {
    PLAN_WEIGHTS,
    PLAN_ADAPTER,
    PLAN_GRADIENTS,
    PLAN_OPTIMISER, /* masters, m and v */
    PLAN_ACTIVATIONS,
    PLAN_BACKWARD, /* gradients of one layer's activations */
    PLAN_LOGITS,
    PLAN_BATCH,     /* ids and positions, the rotary embedding's tables */
    PLAN_WORKSPACE, /* of the operations; an estimate, the rest is exact */
    PLAN_PARTS
} PlanPart;

typedef struct {
    size_t bytes[PLAN_PARTS], total;
    size_t available; /* what is free, and what the model's weights hold if they are loaded */
    int fits;
    int max_tokens, recompute, logit_rows, lora, lean;
} MemoryPlan;

/* Of a model that may be a layout alone, where `available` bytes are free: chooses recomputation,
 * and the tokens of a micro-batch where o says 0. What is too large is no error (see fits); options
 * that contradict each other are. */
int plan_trainer(const Model *m, const TrainerOptions *o, size_t available, MemoryPlan *out,
                 Error *err);
/* The same from a configuration, on the memory of ops' device; lora: NULL for none. */
int plan_training(const ModelConfig *c, const Ops *ops, const LoraOptions *lora,
                  const TrainerOptions *o, MemoryPlan *out, Error *err);

/* A table of the parts in GiB. */
void plan_print(const MemoryPlan *p, Buffer *out);
/* Returns -1 with the sentence: what it takes, what there is, the flags to change. */
int plan_refuse(const MemoryPlan *p, Error *err);

/* Sampling: what model/core/decoder.h says of its decoder, in bytes. */
typedef struct {
    size_t weights, available; /* the adapter's too; free before they are loaded */
    size_t decoder, spare, room, held, token;
    int64_t tokens;
    int rows, prompt, max_new,
        fits; /* fits: all rows at a time, after prompts of so many tokens; else the others wait */
} SamplingPlan;

/* Of the longest prompt with which `rows` rows of max_new tokens have room at a time; of one token
 * where none has. max_new is below the model's positions. */
int plan_sampling(const ModelConfig *c, const Ops *ops, const LoraOptions *lora, int rows,
                  int max_new, SamplingPlan *out, Error *err);
void plan_print_sampling(const SamplingPlan *p, int max_position, Buffer *out);

#endif
