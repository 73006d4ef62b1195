/* Speeds of the native model: training, sampling and the products that both are made of. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "model/model.h"
#include "model/ops.h"

typedef struct {
    int64_t hidden, layers, ff, heads, kv_heads, vocab, length, sequences, steps, batch, prompt, new_tokens, copies;
} Shape;

/* Multiply-adds count two; a training step is three forward passes' worth of products. */
static double forward_flops(const ModelConfig *c, double context)
{
    double row = (c->heads + 2.0 * c->kv_heads) * c->head_dim, wide = (double)c->heads * c->head_dim;
    double layer = c->hidden * row + wide * c->hidden + 3.0 * c->hidden * c->ff + 2 * wide * context;
    return 2 * (c->layers * layer + (double)c->vocab * c->hidden);
}

static void uniform_weights(void *ctx, int sequence, const float *logp, float *weight)
{
    const Sequence *seqs = ctx;
    (void)logp;
    for (int t = 1; t < seqs[sequence].len; t++) weight[t] = -1.0f / (float)seqs[sequence].len;
}

static double best_gemm(int m, int n, int k)
{
    const Ops *op = ops_cpu();
    float *a = op->alloc((size_t)m * (size_t)k), *b = op->alloc((size_t)n * (size_t)k), *c = op->alloc((size_t)m * (size_t)n);
    double best = 0;
    for (int i = 0; i < 8; i++) {
        double t = clock_seconds();
        op->gemm(0, 1, m, n, k, a, k, b, k, 0, c, n);
        t = 2.0 * m * n * k / (clock_seconds() - t) / 1e9;
        if (t > best) best = t;
    }
    op->release(a);
    op->release(b);
    op->release(c);
    return best;
}

static void bench_training(Model *m, const Shape *s, double peak)
{
    Error err;
    Random r;
    random_init(&r, 1, 0);
    int n = (int)s->sequences, len = (int)s->length;
    int32_t *ids = memory_array((size_t)n * (size_t)len, sizeof *ids);
    Sequence *seqs = memory_array((size_t)n, sizeof *seqs);
    for (int i = 0; i < n * len; i++) ids[i] = (int32_t)random_below(&r, (uint64_t)s->vocab);
    for (int i = 0; i < n; i++) seqs[i] = (Sequence){ids + (size_t)i * (size_t)len, len};
    Trainer *t;
    AdamW opt = {.lr = 1e-4, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .clip = 1};
    if (trainer_create(m, 4096, &t, &err)) log_die(1, &err);
    double best = 1e9, loss, norm, part[2] = {0};
    for (int i = 0; i < (int)s->steps; i++) {
        double begin = clock_seconds();
        if (trainer_accumulate(t, seqs, n, uniform_weights, seqs, &loss, &err)) log_die(1, &err);
        double middle = clock_seconds();
        if (trainer_step(t, &opt, &norm, &err)) log_die(1, &err);
        double end = clock_seconds();
        if (end - begin < best) {
            best = end - begin;
            part[0] = middle - begin;
            part[1] = end - middle;
        }
    }
    double flops = 3 * forward_flops(model_config(m), s->length / 2.0), rate = (double)n * len / best;
    printf("training: %.0f tokens/s (forward and backward %.1f ms, AdamW %.1f ms), %.1f GFLOP/s, %.0f%% of sgemm\n", rate,
           1e3 * part[0], 1e3 * part[1], rate * flops / 1e9, 100 * rate * flops / 1e9 / peak);
    float **logp = memory_array((size_t)n, sizeof *logp);
    for (int i = 0; i < n; i++) logp[i] = memory_array((size_t)len, sizeof **logp);
    double begin = clock_seconds();
    if (model_logprobs(m, seqs, n, logp, &err)) log_die(1, &err);
    double spent = clock_seconds() - begin;
    printf("log-probabilities: %.0f tokens/s\n", n * len / spent);
    for (int i = 0; i < n; i++) free(logp[i]);
    free(logp);
    trainer_free(t);
    free(seqs);
    free(ids);
}

typedef struct {
    int64_t tokens;
} Count;

static void count(void *ctx, int request, int copy, const int32_t *ids, const float *logp, int n, int stopped)
{
    (void)request, (void)copy, (void)ids, (void)logp, (void)stopped;
    ((Count *)ctx)->tokens += n;
}

static void bench_sampling(Model *m, const Shape *s, double peak)
{
    Error err;
    Random r;
    random_init(&r, 2, 0);
    int copies = (int)s->copies, n = (int)(2 * s->batch / s->copies);
    if (n < 1) n = 1;
    int32_t *ids = memory_array((size_t)s->prompt, sizeof *ids);
    for (int i = 0; i < (int)s->prompt; i++) ids[i] = (int32_t)random_below(&r, (uint64_t)s->vocab);
    uint64_t *seeds = memory_array((size_t)copies, sizeof *seeds);
    for (int i = 0; i < copies; i++) seeds[i] = random_u64(&r);
    SampleRequest *req = memory_array((size_t)n, sizeof *req);
    for (int i = 0; i < n; i++) req[i] = (SampleRequest){ids, (int)s->prompt, copies, seeds};
    SampleOptions opt = {.temperature = 1, .top_p = 1, .max_new = (int)s->new_tokens, .batch = (int)s->batch};
    Count c = {0};
    double begin = clock_seconds();
    if (model_sample(m, req, n, &opt, count, &c, &err)) log_die(1, &err);
    double spent = clock_seconds() - begin, rate = (double)c.tokens / spent;
    double flops = forward_flops(model_config(m), s->prompt + s->new_tokens / 2.0);
    printf("sampling: %.0f tokens/s, %lld tokens, batch %lld, %d prompts of %lld tokens, %d copies each; %.1f GFLOP/s, %.0f%% of sgemm\n",
           rate, (long long)c.tokens, (long long)s->batch, n, (long long)s->prompt, copies, rate * flops / 1e9,
           100 * rate * flops / 1e9 / peak);
    free(req);
    free(seeds);
    free(ids);
}

int main(int argc, char **argv)
{
    log_open("quern-modelbench");
    Shape s = {192, 4, 512, 6, 2, 2048, 400, 10, 8, 64, 400, 300, 8};
    Flag flags[] = {
        {"hidden", FLAG_INT, &s.hidden, "width", 2, 65536, NULL, 0},
        {"layers", FLAG_INT, &s.layers, "layers", 1, 512, NULL, 0},
        {"ff", FLAG_INT, &s.ff, "width of the MLP", 1, 262144, NULL, 0},
        {"heads", FLAG_INT, &s.heads, "query heads of 32", 1, 1024, NULL, 0},
        {"kv-heads", FLAG_INT, &s.kv_heads, "key and value heads", 1, 1024, NULL, 0},
        {"vocab", FLAG_INT, &s.vocab, "vocabulary", 2, 1 << 20, NULL, 0},
        {"length", FLAG_INT, &s.length, "tokens of a training sequence", 2, 100000, NULL, 0},
        {"sequences", FLAG_INT, &s.sequences, "training sequences of a step", 1, 100000, NULL, 0},
        {"steps", FLAG_INT, &s.steps, "training steps; the fastest counts", 1, 1000, NULL, 0},
        {"batch", FLAG_INT, &s.batch, "rows decoded together", 1, 4096, NULL, 0},
        {"prompt", FLAG_INT, &s.prompt, "tokens of a prompt", 1, 100000, NULL, 0},
        {"new-tokens", FLAG_INT, &s.new_tokens, "tokens of a sample", 1, 100000, NULL, 0},
        {"copies", FLAG_INT, &s.copies, "samples of a prompt", 1, 4096, NULL, 0},
        {0},
    };
    FlagSpec spec = {"quern-modelbench", "", "Prints tokens a second of training and sampling, and of plain sgemm.", flags, 0, 0, 0};
    flags_parse(&spec, argc, argv, NULL);
    Error err;
    ModelConfig c = {.model_type = "qwen2", .vocab = (int)s.vocab, .hidden = (int)s.hidden, .ff = (int)s.ff,
                     .layers = (int)s.layers, .heads = (int)s.heads, .kv_heads = (int)s.kv_heads, .head_dim = 32,
                     .max_position = 1 << 18, .rope_theta = 1e6f, .norm_eps = 1e-6f, .tied = 1, .qkv_bias = 1, .pad = -1};
    Model *m;
    if (model_create(&c, 1, &m, &err)) log_die(1, &err);
    double peak = best_gemm(2048, 2048, 2048);
    printf("model: %zu parameters; threads: %d\n", model_parameters(m), cpu_threads());
    printf("sgemm 2048x2048x2048: %.1f GFLOP/s; 4000x%dx%d: %.1f GFLOP/s\n", peak, 2 * c.ff, c.hidden,
           best_gemm(4000, 2 * c.ff, c.hidden));
    bench_training(m, &s, peak);
    bench_sampling(m, &s, peak);
    model_free(m);
    return log_close(0);
}
