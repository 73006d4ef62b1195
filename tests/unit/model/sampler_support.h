/* Requests and recorded samples for tests of samplers. Define NEW, PROMPTS, COPIES, PROMPT_MAX and
 * VOCAB before. */
#ifndef TESTS_SAMPLER_SUPPORT_H
#define TESTS_SAMPLER_SUPPORT_H

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "model/core/model.h"
#include "model/sampler.h"

typedef struct {
    int32_t ids[NEW];
    float logp[NEW];
    int n, stopped;
} Kept;

typedef struct {
    Kept sample[PROMPTS][COPIES];
    int done;
} Result;

static void keep(void *ctx, int request, int copy, const int32_t *ids, const float *logp, int n,
                 int stopped)
{
    Result *r = ctx;
    assert_int_equal(request * COPIES + copy, r->done++); /* in order */
    Kept *k = &r->sample[request][copy];
    assert_true(n >= 1 && n <= NEW);
    memcpy(k->ids, ids, (size_t)n * sizeof *ids);
    memcpy(k->logp, logp, (size_t)n * sizeof *logp);
    k->n = n;
    k->stopped = stopped;
}

typedef struct {
    int32_t prompt[PROMPTS][PROMPT_MAX];
    uint64_t seed[PROMPTS][COPIES];
    SampleRequest req[PROMPTS];
} Ask;

/* Prompts of these lengths, with the same ids and seeds every time. */
static void make_ask(Ask *a, const int len[PROMPTS])
{
    Random r;
    random_init(&r, 5, 0);
    for (int i = 0; i < PROMPTS; i++) {
        for (int t = 0; t < len[i]; t++) a->prompt[i][t] = (int32_t)random_below(&r, VOCAB);
        for (int c = 0; c < COPIES; c++) a->seed[i][c] = random_u64(&r);
        a->req[i] = (SampleRequest){a->prompt[i], len[i], COPIES, a->seed[i]};
    }
}

/* Sample every request of a, with the model's own distribution. */
static inline void sample_all(Model *m, const Ask *a, int batch, int64_t cache, Result *out)
{
    SampleOptions opt = {
        .temperature = 1, .top_p = 1, .max_new = NEW, .batch = batch, .cache_tokens = cache};
    Error err;
    memset(out, 0, sizeof *out);
    if (model_sample(m, a->req, PROMPTS, &opt, keep, out, &err)) fail_msg("%s", err.text);
    assert_int_equal(out->done, PROMPTS * COPIES);
}

/* The differences of the sampled log-probabilities to those of a full pass over the same ids. */
typedef struct {
    double mean, worst;
    double above_uniform; /* mean log-probability, minus the uniform distribution's */
    int tokens;
} Distance;

static inline Distance forward_distance(Model *m, const Ask *a, const Result *r)
{
    Distance d = {0};
    for (int i = 0; i < PROMPTS; i++)
        for (int c = 0; c < COPIES; c++) {
            const Kept *k = &r->sample[i][c];
            int len = a->req[i].prompt_len;
            int32_t all[PROMPT_MAX + NEW];
            float logp[PROMPT_MAX + NEW], *row = logp;
            Error err;
            memcpy(all, a->prompt[i], (size_t)len * sizeof *all);
            memcpy(all + len, k->ids, (size_t)k->n * sizeof *all);
            Sequence s = {all, len + k->n};
            if (model_logprobs(m, &s, 1, &row, &err)) fail_msg("%s", err.text);
            for (int t = 0; t < k->n; t++, d.tokens++) {
                double off = fabs((double)logp[len + t] - (double)k->logp[t]);
                d.mean += off;
                d.worst = fmax(d.worst, off);
                d.above_uniform += (double)logp[len + t] + log(VOCAB);
            }
        }
    d.mean /= d.tokens;
    d.above_uniform /= d.tokens;
    return d;
}

#endif
