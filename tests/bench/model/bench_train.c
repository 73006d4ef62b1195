/* Timing of training steps and log-probabilities over random token sequences. */
#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "model/core/ranks.h"
#include "model/core/transformer.h"
#include "model/cpu/ops_cpu.h"
#include "model/memory_plan.h"
#include "model/trainer.h"
#include "tests/bench/model/bench.h"

static void uniform_weights(void *ctx, int sequence, const float *logp, float *weight)
{
    const Sequence *seqs = ctx;
    (void)logp;
    for (int t = 1; t < seqs[sequence].len; t++) weight[t] = -1.0f / (float)seqs[sequence].len;
}

static Sequence *make_texts(const BenchTraining *b, int vocab)
{
    Random r;
    random_init(&r, 1, 0);
    size_t n = (size_t)b->sequences, len = (size_t)b->length;
    int32_t *ids = memory_array(n * len, sizeof *ids);
    Sequence *seqs = memory_array(n, sizeof *seqs);
    for (size_t i = 0; i < n * len; i++) ids[i] = (int32_t)random_below(&r, (uint64_t)vocab);
    for (size_t i = 0; i < n; i++) seqs[i] = (Sequence){ids + i * len, b->length};
    return seqs;
}

static int one_step(Trainer *t, Sequence *seqs, int n, double part[2], Error *err)
{
    static const AdamW opt = {.lr = 1e-5, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .clip = 1};
    double loss, norm, begin = clock_seconds();
    if (trainer_accumulate(t, seqs, n, uniform_weights, seqs, &loss, err)) return -1;
    part[0] = clock_seconds() - begin;
    if (trainer_step(t, &opt, &norm, err)) return -1;
    part[1] = clock_seconds() - begin - part[0];
    return 0;
}

static void print_memory(const Model *m, const Trainer *t)
{
    size_t left, total;
    Buffer text;
    buffer_init(&text, 1 << 16);
    plan_print(trainer_plan(t), &text);
    fputs(text.data, stdout);
    buffer_release(&text);
    if (m->ops != ops_cpu() && !m->ops->memory(&left, &total, NULL))
        printf("of the device's memory %.2f GiB of %.2f are taken\n",
               (double)(total - left) / (1 << 30), (double)total / (1 << 30));
}

static int bench_logprobs(Model *m, const BenchTraining *b, const Sequence *seqs, Error *err)
{
    size_t n = (size_t)b->sequences;
    float **logp = memory_array(n, sizeof *logp);
    for (size_t i = 0; i < n; i++) logp[i] = memory_array((size_t)b->length, sizeof **logp);
    double begin = clock_seconds();
    int rc = model_logprobs(m, seqs, b->sequences, logp, err);
    if (!rc)
        printf("log-probabilities: %.0f tokens/s\n",
               b->sequences * (double)b->length / (clock_seconds() - begin));
    for (size_t i = 0; i < n; i++) free(logp[i]);
    free(logp);
    return rc;
}

int bench_training(Model *m, const BenchTraining *b, Error *err)
{
    Trainer *t;
    if (trainer_create(m, &b->trainer, &t, err)) return -1;
    Sequence *seqs = make_texts(b, m->c.vocab);
    double best = 1e9, part[2] = {0}, now[2], tokens = (double)b->sequences * b->length;
    int rc = 0;
    for (int i = 0; i <= b->steps && !rc; i++) { /* the first allocates: not counted */
        rc = one_step(t, seqs, b->sequences, now, err);
        if (rc || (!i && b->steps > 1) || now[0] + now[1] > best) continue;
        best = now[0] + now[1];
        part[0] = now[0];
        part[1] = now[1];
    }
    double flops = tokens / best * bench_training_flops(&m->c, b->length / 2.0, !m->lora.size);
    if (!rc) {
        print_memory(m, t);
        printf("training: %.0f tokens/s (forward and backward %.1f ms, AdamW %.1f ms), %.3g "
               "TFLOP/s, %.0f%% of %.3g\n",
               tokens / best, 1e3 * part[0], 1e3 * part[1], flops / 1e12, 100 * flops / b->peak,
               b->peak / 1e12);
    }
    if (!rc && b->profile) {
        profile_begin(m);
        rc = one_step(t, seqs, b->sequences, now, err);
        if (profile_end(m, err)) rc = -1;
    }
    trainer_free(t);
    if (!rc && ranks_size() == 1) rc = bench_logprobs(m, b, seqs, err);
    free((int32_t *)(uintptr_t)seqs[0].ids);
    free(seqs);
    return rc;
}
