/* The gradient loop that the three stages share: examples in shuffled minibatches, one AdamW step
 * each, every loss as one weight per answer token (stages/train/loss.h). The normaliser is the
 * minibatch's, over all its micro-batches. */
#ifndef STAGES_TRAIN_TRAINING_H
#define STAGES_TRAIN_TRAINING_H

#include "artifacts/artifact.h"
#include "model/core/model.h"
#include "model/memory_plan.h"
#include "stages/train/loss.h"

typedef struct {
    int32_t *ids;    /* prompt and answer */
    int len, prompt; /* prompt: tokens without weight */
    double advantage;
    /* of the answer's tokens (len - prompt of them), or NULL: under the weights before the update,
     * under the KL term's model, and as another engine sampled them */
    float *old_logp, *ref_logp, *sampler_logp;
    char *user, *assistant; /* the texts behind the ids: for a trainer elsewhere; or NULL */
} Example;

typedef struct {
    double lr, warmup,
        final_lr; /* warmup: share of the steps; final_lr: share of lr at the end (cosine) */
    double clip_norm, weight_decay, beta2;
    Loss loss;
    int batch, epochs;      /* batch: sequences a step */
    TrainerOptions trainer; /* fixed_weights is filled in */
    long n_first; /* before the epochs over all, first_epochs over the first n_first examples alone
                   */
    int first_epochs;
    uint64_t seed;
    const char *checkpoint;   /* directory for exact resume, or NULL */
    double checkpoint_s;      /* how often; 0 never */
    const ArtifactSpec *spec; /* a checkpoint of another configuration is not used */
} TrainingOptions;

void training_defaults(TrainingOptions *o);

/* Train; metrics (kind metrics: loss, norm, lr and, where they apply, clipped, kl, correction by
 * step) go to metrics_path unless NULL. A requested stop keeps a checkpoint and returns -1 with
 * "stopped". The checkpoint stays until training_forget: it is removed after the model is saved. */
int training_run(Model *m, const Example *ex, long n, const TrainingOptions *o,
                 const char *metrics_path, Error *err);
void training_forget(const TrainingOptions *o);

/* Log-probabilities of the answers under m, into out[i] (len - prompt floats each). */
int training_logprobs(Model *m, const Example *ex, long n, int batch, float **out, Error *err);

void example_release(Example *e);
void examples_free(Example *ex, long n);

#endif
