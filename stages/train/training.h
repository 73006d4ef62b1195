/* The gradient loop that the three stages share: examples in shuffled minibatches, one AdamW step
 * per minibatch, the loss as one weight per answer token (stages/train/loss.h). The loss is
 * normalized over the minibatch, also when it is computed in several micro-batches. */
#ifndef STAGES_TRAIN_TRAINING_H
#define STAGES_TRAIN_TRAINING_H

#include "artifacts/artifact.h"
#include "model/core/model.h"
#include "model/memory_plan.h"
#include "stages/train/loss.h"

typedef struct {
    int32_t *ids;    /* prompt, then answer */
    int len, prompt; /* tokens of both; tokens of the prompt, which have no weight */
    double advantage;
    /* Log-probabilities of the len - prompt tokens of the answer, or NULL: under the weights before
     * the update, under the reference model of the KL term, and as another engine sampled them. */
    float *old_logp, *ref_logp, *sampler_logp;
    char *user, *assistant; /* prompt and answer as text, for an outside trainer; or NULL */
} Example;

typedef struct {
    double lr;       /* peak learning rate */
    double warmup;   /* share of the steps with a linear warm-up */
    double final_lr; /* share of lr at the end of the cosine decay */
    double clip_norm, weight_decay, beta2;
    Loss loss;
    int batch, epochs;      /* batch: sequences per step */
    TrainerOptions trainer; /* fixed_weights is filled in */
    long n_first;           /* the first examples get first_epochs more, before the others */
    int first_epochs;
    uint64_t seed;
    const Example *val; /* their mean loss a token is measured after each pass, as validation */
    long n_val;
    double reference_kl;      /* noted among the metrics as reference.kl; NAN: not known */
    const char *checkpoint;   /* directory for exact resume, or NULL */
    double checkpoint_s;      /* seconds between checkpoints; 0: only at a stop */
    const ArtifactSpec *spec; /* a checkpoint of another configuration is not used */
} TrainingOptions;

void training_defaults(TrainingOptions *o);

/* Trains m on the examples. Writes the metrics of each step (loss, norm, lr and, where they apply,
 * clipped, kl, correction), validation and reference.kl to metrics_path unless it is NULL.
 * A requested stop saves a checkpoint and is ERROR_STOPPED; the next call continues there, with the
 * same bits as without the stop. The checkpoint stays until training_forget, which the caller calls
 * after it has saved the model. */
int training_run(Model *m, const Example *ex, long n, const TrainingOptions *o,
                 const char *metrics_path, Error *err);
void training_forget(const TrainingOptions *o);

/* Computes the log-probabilities of the answers under m. out[i] becomes an array of len - prompt
 * floats, which the caller frees. */
int training_logprobs(Model *m, const Example *ex, long n, int batch, float **out, Error *err);

/* Warns of examples that were left out as longer than max_len tokens, and names the setting whose
 * --context takes them in. It is an error when none of `all` is left. */
int training_dropped(long dropped, long all, int max_len, const char *setting, Error *err);
void example_release(Example *e);
void examples_free(Example *ex, long n);

#endif
