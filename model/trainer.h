/* Training: accumulate the gradients of any number of sequences, then take one AdamW step. */
#ifndef MODEL_TRAINER_H
#define MODEL_TRAINER_H

#include <stdint.h>

#include "model/core/model.h"
#include "model/memory_plan.h"

/* Called once per sequence, between the forward and the backward pass. It fills weight[t] =
 * dL/dlogp(ids[t] | ids[<t]) from logp[t], for t in 1..len-1, with 0 for the tokens of a prompt.
 * weight[0] is not used. */
typedef void TokenWeights(void *ctx, int sequence, const float *logp, float *weight);

typedef struct {
    /* clip: the maximal global norm, 0 for none. Decay applies to matrices only. */
    double lr, beta1, beta2, eps, weight_decay, clip;
} AdamW;

typedef struct Trainer Trainer;

/* With ranks (model/core/ranks.h, started before the model is created) every rank calls the
 * functions below in the same order with the same sequences. Each rank computes a share of the
 * sequences and updates a slice of the weights. TokenWeights is called for the share. */

/* Create a trainer of the adapter if the model has one, else of all weights. m must outlive it.
 * Returns an error if it does not fit the memory (model/memory_plan.h). */
int trainer_create(Model *m, const TrainerOptions *o, Trainer **out, Error *err);
void trainer_free(Trainer *t);
/* Add the gradient of any number of sequences, in micro-batches. *loss is the sum of weight times
 * logp over all of them. */
int trainer_accumulate(Trainer *t, const Sequence *seqs, int n, TokenWeights *weights, void *ctx,
                       double *loss, Error *err);
/* Apply AdamW to the accumulated gradient, and clear it. *norm is its global norm before clipping.
 * A gradient that is not finite is an error: it is dropped, and nothing else changes. */
int trainer_step(Trainer *t, const AdamW *opt, double *norm, Error *err);
/* Exact resume: optimizer.safetensors holds m, v, the step, and fp32 weights (w) where model_save
 * rounds them. Rank 0 writes it. Call it between steps: accumulated gradients are not saved. */
int trainer_save(const Trainer *t, const char *path, Error *err);
int trainer_load(Trainer *t, const char *path, Error *err);
/* Returns the memory plan that the trainer follows. */
const MemoryPlan *trainer_plan(const Trainer *t);

#endif
