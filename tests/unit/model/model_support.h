/* Support of the training tests: a tiny model of each family, texts and weights. */
#ifndef TESTS_MODEL_SUPPORT_H
#define TESTS_MODEL_SUPPORT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "model/core/lora.h"
#include "model/core/parameters.h"
#include "model/trainer_state.h"

enum { TEXTS = 5, TEXT_LEN = 11, WORDS = 19 };

static inline float *numbers(const ParamSet *p)
{
    return p->data;
}

static inline void disturb(ParamSet *p, Random *r, double by)
{
    for (int i = 0; i < p->n; i++)
        for (size_t j = 0; j < p->tensor[i].count; j++)
            numbers(p)[p->tensor[i].at + j] += (float)(by * random_normal(r));
}

/* Set the switches of a family. */
static inline void set_family(ModelConfig *c, const char *type)
{
    strcpy(c->model_type, type);
    c->qkv_bias = !strcmp(type, "qwen2");
    c->qk_norm = !strcmp(type, "qwen3");
    c->tied = strcmp(type, "llama") != 0;
}

/* A random model, `spread` away from the initial weights, so that norms and biases matter. */
static inline Model *random_model(const ModelConfig *shape, const char *type, const Ops *op,
                                  uint64_t seed, uint64_t stream, double spread)
{
    ModelConfig c = *shape;
    Error err;
    Model *m;
    Random r;
    set_family(&c, type);
    if (model_create(&c, op, seed, &m, &err)) fail_msg("%s", err.text);
    random_init(&r, seed, stream);
    disturb(&m->base, &r, spread);
    return m;
}

/* Odd sizes on purpose: nothing is a multiple of a vector. */
static inline Model *tiny_of(const char *type, const Ops *op, uint64_t seed, int layers)
{
    const ModelConfig c = {.vocab = WORDS,
                           .hidden = 12,
                           .ff = 17,
                           .layers = layers,
                           .heads = 4,
                           .kv_heads = 2,
                           .head_dim = 6,
                           .max_position = 64,
                           .rope_theta = 1000,
                           .norm_eps = 1e-5f,
                           .pad = -1};
    return random_model(&c, type, op, seed, 99, 0.3);
}

static inline Model *tiny_on(const char *type, const Ops *op, uint64_t seed)
{
    return tiny_of(type, op, seed, 3);
}

/* B is not 0, so that A has a gradient. */
static inline void adapt(Model *m, unsigned targets, int rslora)
{
    Error err;
    Random r;
    random_init(&r, 21, 0);
    LoraOptions o = {.rank = 3, .alpha = 5, .rslora = rslora, .targets = targets, .seed = 4};
    if (model_add_lora(m, &o, &err)) fail_msg("%s", err.text);
    disturb(&m->lora, &r, 0.2);
}

typedef struct {
    int32_t ids[TEXTS][TEXT_LEN];
    float weight[TEXTS][TEXT_LEN];
    Sequence seqs[TEXTS];
} Texts;

static inline void make_texts(Texts *x)
{
    Random r;
    random_init(&r, 3, 0);
    for (int i = 0; i < TEXTS; i++) {
        x->seqs[i] = (Sequence){x->ids[i], TEXT_LEN - i};
        for (int t = 0; t < TEXT_LEN; t++) {
            x->ids[i][t] = (int32_t)random_below(&r, WORDS);
            x->weight[i][t] =
                t > 3 ? (float)(0.1 * random_normal(&r)) : 0; /* a prompt without weights */
        }
    }
}

static inline void given_weights(void *ctx, int sequence, const float *logp, float *weight)
{
    const Texts *x = ctx;
    (void)logp;
    memcpy(weight, x->weight[sequence], (size_t)x->seqs[sequence].len * sizeof *weight);
}

static inline Trainer *trainer_of(Model *m, TrainerOptions o)
{
    Error err;
    Trainer *t;
    if (trainer_create(m, &o, &t, &err)) fail_msg("%s", err.text);
    return t;
}

static inline double accumulate(Trainer *t, Texts *x)
{
    Error err;
    double loss;
    if (trainer_accumulate(t, x->seqs, TEXTS, given_weights, x, &loss, &err))
        fail_msg("%s", err.text);
    return loss;
}

static inline double one_step(Trainer *t, Texts *x, double *norm)
{
    static const AdamW optimiser = {
        .lr = 3e-3, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.01, .clip = 1};
    Error err;
    double loss = accumulate(t, x);
    if (trainer_step(t, &optimiser, norm, &err)) fail_msg("%s", err.text);
    return loss;
}

static inline char *temp_dir(void)
{
    char *dir = memory_strdup("/tmp/quern-model-test.XXXXXX");
    if (!mkdtemp(dir)) fail_msg("%s cannot be made", dir);
    return dir;
}

static inline void drop_dir(char *dir)
{
    Error err;
    if (file_remove_tree(dir, &err)) fail_msg("%s", err.text);
    free(dir);
}

#endif
