/* Samples asked for and kept, for tests of samplers. Define NEW, PROMPTS, COPIES, PROMPT_MAX and
 * VOCAB before. */
#ifndef TESTS_SAMPLER_SUPPORT_H
#define TESTS_SAMPLER_SUPPORT_H

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

/* Prompts of those lengths; the same ids and seeds every time. */
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

#endif
