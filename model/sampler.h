/* Sampling: many samples of many prompts, some rows at a time. */
#ifndef MODEL_SAMPLER_H
#define MODEL_SAMPLER_H

#include <stdint.h>

#include "model/core/model.h"

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
    int top_k;   /* 0: all; model/core/draw_law.h says in which order the law is cut */
    float min_p; /* 0: off */
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
