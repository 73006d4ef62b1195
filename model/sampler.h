/* Sampling: draw many samples of many prompts, a limited number of rows at a time. */
#ifndef MODEL_SAMPLER_H
#define MODEL_SAMPLER_H

#include <stdint.h>

#include "model/core/model.h"

typedef struct {
    const int32_t *prompt;
    int prompt_len;
    int copies;            /* samples of this prompt, whose prefix is computed once */
    const uint64_t *seeds; /* [copies]: each sample has its own seed */
} SampleRequest;

/* Ids that end a sample when they are its last ids. */
typedef struct {
    const int32_t *ids;
    int n;
} StopSequence;

typedef struct {
    /* 1 and 1 give the model's own distribution, as reinforcement learning needs it.
     * Temperature 0 gives the most probable token. */
    float temperature, top_p;
    int max_new;       /* new tokens, including the end token */
    int batch;         /* rows decoded at a time */
    const int *banned; /* ids that are never sampled (padding rows, unused special tokens) */
    int n_banned;
    int top_k;                 /* 0: off; model/core/decoder.h defines the order of the cuts */
    float min_p;               /* 0: off */
    const StopSequence *stops; /* in addition to the end tokens of the model */
    int n_stops;
    /* On a GPU: tokens whose keys and values are kept, at most; 0: as many as memory allows. Rows
     * wait for others to end if that is too few. */
    int64_t cache_tokens;
} SampleOptions;

/* Receives one finished sample. ids includes the end token or the stop sequence if it stopped. logp
 * is of the full softmax at the temperature (at 1 if that is 0), including ids that the law leaves
 * out, as in model_logprobs. */
typedef void SampleDone(void *ctx, int request, int copy, const int32_t *ids, const float *logp,
                        int n, int stopped);

/* Samples are delivered in the order of (request, copy). The bits of a sample depend on its prompt,
 * its seed, the law, max_new and stops only: not on batch, on the other requests, or on where a
 * resumed run starts. A signal (base/stop.h) ends the call with an error after the samples
 * delivered so far. */
int model_sample(Model *m, const SampleRequest *req, int n, const SampleOptions *opt,
                 SampleDone *done, void *ctx, Error *err);

#endif
