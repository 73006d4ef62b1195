/* A decoder-only transformer (Qwen2, Qwen3 and Llama by three switches) on a device: the CPU in
 * fp32, or a GPU in bf16. Results repeat bit for bit on a device of the same kind; on the CPU they
 * do not depend on the number of threads (QUERN_THREADS; default: the online cores) either.
 * Functions that return int: 0, or -1 with an error; what they give out is the caller's to free. */
#ifndef MODEL_CORE_MODEL_H
#define MODEL_CORE_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* How the rotary embedding is stretched to longer texts (model/core/rope.h has the formulas);
 * zeros: not at all. */
typedef enum { ROPE_DEFAULT, ROPE_LLAMA3, ROPE_YARN } RopeType;
typedef struct {
    RopeType type;
    float factor;
    float slow, fast; /* llama3: low_freq_factor, high_freq_factor; yarn: beta_slow, beta_fast */
    float attention;  /* yarn: attention_factor, by which cosines and sines are multiplied */
    int original;     /* original_max_position_embeddings */
} RopeScaling;

typedef struct {
    char model_type[16]; /* "qwen2", "qwen3" or "llama" */
    int vocab, hidden, ff, layers, heads, kv_heads, head_dim, max_position;
    float rope_theta, norm_eps;
    int tied, qkv_bias, qk_norm;
    int eos[8], n_eos, pad; /* ids */
    RopeScaling rope;
    int dtype; /* of the weights as config.json has it: ST_F32, ST_BF16 or ST_F16
                  (model/files/safetensors.h) */
} ModelConfig;

typedef struct Model Model;

/* The table of operations of a device (model/core/ops.h; model/model_device.h has it by name). */
typedef struct Ops Ops;
const Ops *ops_cpu(void);

/* New weights: N(0, 0.02), those of o and down divided by sqrt(2 layers); norms 1, biases 0. */
int model_create(const ModelConfig *c, const Ops *ops, uint64_t seed, Model **out, Error *err);
void model_free(Model *m);
const ModelConfig *model_config(const Model *m);
size_t model_parameters(const Model *m);
/* Samples end at this token too: a chat's end that the configuration does not name. */
int model_add_end(Model *m, int id, Error *err);

/* Hugging Face directories: config.json (kept byte for byte when it was loaded), safetensors (one
 * file or several, F32, BF16 or F16; saved as config.json says, in files of 5 GB), and what else
 * lies there (tokenizer.json, generation_config.json) copied by the caller. A model with an adapter
 * is a PEFT directory: adapter_config.json, which names its base model's directory (absolute, or
 * from where it lies), and adapter_model.safetensors. */
int model_load(const char *dir, const Ops *ops, Model **out, Error *err);
int model_save(const Model *m, const char *dir,
               Error *err); /* weights and configuration; dir exists */
int model_restore(Model *m, const char *dir,
                  Error *err); /* weights of an equal configuration into m */

/* One text: ids[0..len). */
typedef struct {
    const int32_t *ids;
    int len;
} Sequence;

/* Log-probabilities under the model at temperature 1: logp[i][t] for t in 1..len-1 (logp[i][0] =
 * 0). */
int model_logprobs(Model *m, const Sequence *seqs, int n, float *const *logp, Error *err);

/* Called once a sequence, between the ways forward and back: fill weight[t] = dL/dlogp(ids[t] |
 * ids[<t]) for t in 1..len-1, 0 for a prompt's tokens, from logp[t]. weight[0] is not used. */
typedef void TokenWeights(void *ctx, int sequence, const float *logp, float *weight);

typedef struct {
    double lr, beta1, beta2, eps, weight_decay,
        clip; /* clip: global norm, 0 none; decay on matrices only */
} AdamW;

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

typedef struct Trainer Trainer;

/* With ranks (model/ranks.h: started before the model is made) every rank calls the functions below
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

/* ---- adapters (LoRA): y = W x + scale B A x, W frozen ---- */
enum {
    LORA_Q = 1,
    LORA_K = 2,
    LORA_V = 4,
    LORA_O = 8,
    LORA_GATE = 16,
    LORA_UP = 32,
    LORA_DOWN = 64,
    LORA_ALL = 127
};

typedef struct {
    int rank;
    double alpha; /* scale: alpha / rank, or alpha / sqrt(rank) */
    int rslora;
    unsigned targets; /* LORA_Q and so on */
    uint64_t seed;    /* of A: uniform within 1/sqrt(inputs); B is 0 */
} LoraOptions;

int model_add_lora(Model *m, const LoraOptions *o, Error *err);
const LoraOptions *model_lora(const Model *m); /* NULL: there is none */

/* ---- sampling ---- */
typedef struct {
    const int32_t *prompt;
    int prompt_len;
    int copies;            /* samples of this prompt; its prefix is computed once */
    const uint64_t *seeds; /* one per copy: a sample's randomness is its own seed's */
} SampleRequest;

/* Ids that end a sample when they are its last ones. */
typedef struct {
    const int32_t *ids;
    int n;
} StopSequence;

typedef struct {
    float temperature,
        top_p;   /* 1 and 1: the model's own law, as reinforcement needs; 0: the likeliest token */
    int max_new; /* tokens, the end token included */
    int batch;   /* rows decoded together */
    const int *banned; /* ids never sampled (padding rows, unused specials) */
    int n_banned;
    int top_k;                 /* 0: all; model/core/draw.h says in which order the law is cut */
    float min_p;               /* 0: off */
    const StopSequence *stops; /* besides the model's end tokens */
    int n_stops;
    int64_t cache_tokens; /* on a GPU: keys and values of so many tokens at most; 0: what memory
                             allows. Rows wait for others to end where that is too few. */
} SampleOptions;

/* One finished sample; ids include the end token, or the stop sequence, when it stopped. logp is of
 * the full softmax at the temperature (at 1 when that is 0), whatever top_k, top_p, min_p and
 * banned leave out: what model_logprobs gives. */
typedef void SampleDone(void *ctx, int request, int copy, const int32_t *ids, const float *logp,
                        int n, int stopped);

/* Samples are delivered in order of (request, copy). A sample's bits depend on its prompt, its
 * seed, the law, max_new and stops alone: not on batch, on the other requests, or on where a
 * resumed run starts. A signal (base/stop.h) ends the call with an error after what was delivered.
 */
int model_sample(Model *m, const SampleRequest *req, int n, const SampleOptions *opt,
                 SampleDone *done, void *ctx, Error *err);

#endif
