/* Training: gradients of any number of sequences, then one AdamW step. */
#ifndef MODEL_TRAINER_H
#define MODEL_TRAINER_H

#include <stdint.h>

#include "model/core/model.h"
#include "model/memory_plan.h"

/* Called once a sequence, between the ways forward and back: fill weight[t] = dL/dlogp(ids[t] |
 * ids[<t]) for t in 1..len-1, 0 for a prompt's tokens, from logp[t]. weight[0] is not used. */
typedef void TokenWeights(void *ctx, int sequence, const float *logp, float *weight);

typedef struct {
    double lr, beta1, beta2, eps, weight_decay,
        clip; /* clip: global norm, 0 none; decay on matrices only */
} AdamW;

typedef struct Trainer Trainer;

/* With ranks (model/core/ranks.h: started before the model is made) every rank calls the functions below
 * alike, with the same sequences; each computes a share of them and updates a slice of the weights.
 * TokenWeights is called for the share. */

/* Trains the adapter where the model has one, else all weights; m outlives it. Refuses what does
 * not fit the memory (model/memory_plan.h). */
int trainer_create(Model *m, const TrainerOptions *o, Trainer **out, Error *err);
void trainer_free(Trainer *t);
/* Add the gradient of any number of sequences, in micro-batches; *loss: the sum of weight times
 * logp over all of them. */
int trainer_accumulate(Trainer *t, const Sequence *seqs, int n, TokenWeights *weights, void *ctx,
                       double *loss, Error *err);
/* AdamW on the accumulated gradient, which is cleared; *norm is its global norm before clipping. A
 * gradient that is not finite is an error: it is dropped and nothing else changes. */
int trainer_step(Trainer *t, const AdamW *opt, double *norm, Error *err);
/* Exact resume: optimizer.safetensors holds m, v, the step, and fp32 weights (w) where model_save
 * rounds them; of ranks the first writes. Between steps: what was accumulated is not saved. */
int trainer_save(const Trainer *t, const char *path, Error *err);
int trainer_load(Trainer *t, const char *path, Error *err);
/* What the trainer takes of the device's memory. */
const MemoryPlan *trainer_plan(const Trainer *t);

#endif
