/* Timing of sampling from random prompts. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "model/sampler.h"
#include "tests/bench/model/bench.h"

static void count(void *ctx, int request, int copy, const int32_t *ids, const float *logp, int n,
                  int stopped)
{
    (void)request, (void)copy, (void)ids, (void)logp, (void)stopped;
    *(int64_t *)ctx += n;
}

int bench_sampling(Model *m, const BenchSampling *b, Error *err)
{
    Random r;
    random_init(&r, 2, 0);
    int n = 2 * b->batch / b->copies < 1 ? 1 : 2 * b->batch / b->copies;
    int32_t *ids = memory_array((size_t)b->prompt, sizeof *ids);
    for (int i = 0; i < b->prompt; i++)
        ids[i] = (int32_t)random_below(&r, (uint64_t)model_config(m)->vocab);
    uint64_t *seeds = memory_array((size_t)b->copies, sizeof *seeds);
    for (int i = 0; i < b->copies; i++) seeds[i] = random_u64(&r);
    SampleRequest *req = memory_array((size_t)n, sizeof *req);
    for (int i = 0; i < n; i++) req[i] = (SampleRequest){ids, b->prompt, b->copies, seeds};
    SampleOptions opt = {.temperature = 1, .top_p = 1, .max_new = b->new_tokens, .batch = b->batch};
    int64_t tokens = 0;
    double begin = clock_seconds();
    int rc = model_sample(m, req, n, &opt, count, &tokens, err);
    double rate = (double)tokens / (clock_seconds() - begin);
    double flops = rate * bench_forward_flops(model_config(m), b->prompt + b->new_tokens / 2.0);
    if (!rc)
        printf("sampling: %.0f tokens/s, %lld tokens, batch %d, %d prompts of %d tokens, %d copies "
               "each; %.3g TFLOP/s, "
               "%.0f%% of %.3g\n",
               rate, (long long)tokens, b->batch, n, b->prompt, b->copies, flops / 1e12,
               100 * flops / b->peak, b->peak / 1e12);
    free(req);
    free(seeds);
    free(ids);
    return rc;
}
