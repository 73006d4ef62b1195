/* The gradient loop that the three stages share: examples in shuffled minibatches, one AdamW step each,
 * every loss as one weight per token (reference: training, section 5.0):
 *
 *   w_t = -(A * rho_t * inside_t)/Z  [+ beta (1 - exp(ref_t - lp_t))/Z],   rho_t = exp(lp_t - old_t)
 *
 * with Z the answer tokens of the minibatch, rho = 1 and inside = 1 without old log-probabilities. A = 1 is
 * supervised fine-tuning; A = 1 for successes alone is stage 2; group advantages with old and ref are GRPO,
 * where inside_t is 0 for A > 0 and rho > 1 + eps_high, and for A < 0 and rho < 1 - eps_low. */
#ifndef STAGES_TRAINING_H
#define STAGES_TRAINING_H

#include "artifacts/artifact.h"
#include "model/model.h"

typedef struct {
    int32_t *ids;                  /* prompt and answer */
    int len, prompt;               /* prompt: tokens without weight */
    double advantage;
    float *old_logp, *ref_logp;    /* of the answer's tokens (len - prompt of them), or NULL */
} Example;

typedef struct {
    double lr, warmup, final_lr;   /* warmup: share of the steps; final_lr: share of lr at the end (cosine) */
    double clip_norm, weight_decay, beta2;
    double eps_low, eps_high, kl;
    int batch, epochs, max_tokens; /* sequences a step; max_tokens of one micro-batch */
    long n_first;                  /* before the epochs over all, first_epochs over the first n_first examples alone */
    int first_epochs;
    uint64_t seed;
    const char *checkpoint;        /* directory for exact resume, or NULL */
    double checkpoint_s;           /* how often; 0 never */
    const ArtifactSpec *spec;      /* a checkpoint of another configuration is not used */
} TrainingOptions;

void training_defaults(TrainingOptions *o);

/* The weights above of one example whose tokens have logp now, z as Z; clipped and kl (sums over its tokens)
 * are added to. */
typedef struct {
    double clipped, kl;
} TokenCounts;
void training_weights(const Example *e, const TrainingOptions *o, double z, const float *logp, float *weight,
                      TokenCounts *counts);

/* Train; metrics (kind metrics: loss, norm, lr, clipped, kl by step) go to metrics_path unless NULL. A
 * requested stop keeps a checkpoint and returns -1 with "stopped". The checkpoint stays until
 * training_forget: it is removed after the model is saved. */
int training_run(Model *m, const Example *ex, long n, const TrainingOptions *o, const char *metrics_path, Error *err);
void training_forget(const TrainingOptions *o);

/* Log-probabilities of the answers under m, into out[i] (len - prompt floats each). */
int training_logprobs(Model *m, const Example *ex, long n, int batch, float **out, Error *err);

void examples_free(Example *ex, long n);

#endif
