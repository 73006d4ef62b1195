/* A decoder-only transformer (Qwen2; Qwen3 and Llama by the switches of reference maths) with fp32
 * weights on the CPU: OpenBLAS for the products, OpenMP for the rest. Results repeat bit for bit
 * and do not depend on the number of threads (QUERN_THREADS; default: the online cores). One flat parameter array, one flat gradient array; tensors are views. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct {
    char model_type[16];           /* "qwen2" */
    int vocab, hidden, ff, layers, heads, kv_heads, head_dim, max_position;
    float rope_theta, norm_eps;
    int tied, qkv_bias, qk_norm;
    int eos[8], n_eos, pad;        /* ids */
} ModelConfig;

typedef struct Model Model;

int model_create(const ModelConfig *c, uint64_t seed, Model **out, Error *err); /* N(0, 0.02), residual outputs scaled by 1/sqrt(2 layers) */
void model_free(Model *m);
const ModelConfig *model_config(const Model *m);
size_t model_parameters(const Model *m);

/* Hugging Face directories: config.json (kept byte for byte when it was loaded), model.safetensors
 * (F32), and what else lies there (tokenizer.json, generation_config.json) copied by the caller. */
int model_load(const char *dir, Model **out, Error *err);
int model_save(const Model *m, const char *dir, Error *err);   /* weights + config.json; dir exists */
int model_restore(Model *m, const char *dir, Error *err);      /* weights of an equal configuration into m */

/* One packed row of training: ids[0..len), of which weight[t] = dL/dlogp(ids[t] | ids[<t]) is given
 * for t >= 1 (0 for prompt tokens); weight[0] is ignored. */
typedef struct {
    const int32_t *ids;
    int len;
} Sequence;

/* Log-probabilities under the model at temperature 1: logp[i][t] for t in 1..len-1 (logp[i][0] = 0). */
int model_logprobs(Model *m, const Sequence *seqs, int n, float *const *logp, Error *err);

/* Called once per sequence between forward and backward: fill weight[1..len-1] from logp. */
typedef void TokenWeights(void *ctx, int sequence, const float *logp, float *weight);

typedef struct {
    double lr, beta1, beta2, eps, weight_decay, clip; /* clip: global norm, 0 none; decay on matrices only */
} AdamW;

typedef struct Trainer Trainer;
/* max_tokens: of one micro-batch (sequences are packed, attention is block diagonal). */
int trainer_create(Model *m, int max_tokens, Trainer **out, Error *err);
void trainer_free(Trainer *t);
/* Add the gradient of one set of sequences (any number: split into micro-batches). Returns the sum of
 * weight*logp in *loss. */
int trainer_accumulate(Trainer *t, const Sequence *seqs, int n, TokenWeights *weights, void *ctx, double *loss, Error *err);
/* AdamW on the accumulated gradient, which is cleared; *norm is its global norm before clipping. A
 * gradient that is not finite is an error: it is dropped and nothing else changes. */
int trainer_step(Trainer *t, const AdamW *opt, double *norm, Error *err);
/* Exact resume: optimizer.safetensors (m, v in F32; the step in __metadata__ or a tensor). */
int trainer_save(const Trainer *t, const char *path, Error *err);
int trainer_load(Trainer *t, const char *path, Error *err);

/* ---- sampling ---- */
typedef struct {
    const int32_t *prompt;
    int prompt_len;
    int copies;                    /* samples of this prompt; its prefix is computed once */
    const uint64_t *seeds;         /* one per copy: a sample's randomness is its own seed's */
} SampleRequest;

typedef struct {
    float temperature, top_p;      /* 1 and 1: the model's own law, as reinforcement needs; 0: the likeliest token */
    int max_new;                   /* tokens, the end token included */
    int batch;                     /* rows decoded together */
    const int *banned;             /* ids never sampled (padding rows, unused specials) */
    int n_banned;
} SampleOptions;

/* One finished sample; ids include the end token when it stopped. logp is of the full softmax at the
 * temperature (at 1 when that is 0), whatever top_p and banned leave out: what model_logprobs gives. */
typedef void SampleDone(void *ctx, int request, int copy, const int32_t *ids, const float *logp, int n, int stopped);

/* Samples are delivered in order of (request, copy). A sample's bits depend on its prompt, its seed,
 * temperature, top_p, max_new and banned alone: not on batch, on the other requests, or on where a
 * resumed run starts. A signal (base/stop.h) ends the call with an error after what was delivered. */
int model_sample(Model *m, const SampleRequest *req, int n, const SampleOptions *opt, SampleDone *done, void *ctx,
                 Error *err);

#endif
