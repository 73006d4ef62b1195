/* Training on a table of 16-bit numbers against the CPU's, on tiny models of the three families.
 * The same weights (rounded to bf16) and texts give the same log-probabilities and gradients up to
 * that rounding. Recomputation does not change a bit, and resume is exact. For the CUDA table, and
 * for a table that rounds on the CPU. */
#ifndef TESTS_TRAINING_CHECKS_H
#define TESTS_TRAINING_CHECKS_H

#include <math.h>

#include "model/core/halves.h"
#include "model/core/lora.h"
#include "model/cpu/ops_cpu.h"
#include "model/files/model_files.h"
#include "model/files/safetensors.h"
#include "model/trainer_state.h"
#include "tests/unit/model/model_support.h"

static const Ops *gpu; /* the table under test */

enum { LONG = 70, MANY = 6, VOCAB = 208, HUGE_MANY = 24 };

typedef struct {
    int32_t ids[MANY][LONG];
    float weight[MANY][LONG];
    Sequence seqs[MANY];
} LongTexts;

static void make_long(LongTexts *x)
{
    Random r;
    random_init(&r, 3, 0);
    for (int i = 0; i < MANY; i++) {
        x->seqs[i] = (Sequence){x->ids[i], LONG - 9 * i};
        for (int t = 0; t < LONG; t++) {
            x->ids[i][t] = (int32_t)random_below(&r, VOCAB);
            x->weight[i][t] = t > 8 ? (float)(0.02 * random_normal(&r)) : 0;
        }
    }
}

static void long_weights(void *ctx, int sequence, const float *logp, float *weight)
{
    const LongTexts *x = ctx;
    (void)logp;
    memcpy(weight, x->weight[sequence], (size_t)x->seqs[sequence].len * sizeof *weight);
}

/* A directory for both devices, with weights that bf16 holds. */
static char *make_base_of(const char *type, Dtype dtype)
{
    ModelConfig c = {.vocab = VOCAB,
                     .hidden = 64,
                     .ff = 104,
                     .layers = 3,
                     .heads = 4,
                     .kv_heads = 2,
                     .head_dim = 32,
                     .max_position = 128,
                     .rope_theta = 10000,
                     .norm_eps = 1e-6f,
                     .pad = -1,
                     .dtype = dtype};
    Error err;
    Model *m;
    Random r;
    set_family(&c, type);
    random_init(&r, 8, 1);
    if (model_create(&c, ops_cpu(), 5, &m, &err)) fail_msg("%s", err.text);
    for (size_t i = 0; i < m->base.size; i++)
        numbers(&m->base)[i] += (float)(0.08 * random_normal(&r));
    char *dir = temp_dir();
    if (model_save(m, dir, &err)) fail_msg("%s", err.text);
    model_free(m);
    return dir;
}

static char *make_base(const char *type)
{
    return make_base_of(type, DTYPE_BF16);
}

static Model *load_on(const char *dir, const Ops *ops)
{
    Error err;
    Model *m;
    if (model_load(dir, ops, &m, &err)) fail_msg("%s", err.text);
    return m;
}

/* Adapters with a nonzero B of bf16 numbers. */
static void adapt_both(Model *m)
{
    Error err;
    LoraOptions o = {.rank = 8, .alpha = 16, .targets = LORA_ALL, .seed = 4};
    if (model_add_lora(m, &o, &err)) fail_msg("%s", err.text);
    float *host = memory_array(m->lora.size, sizeof *host);
    Random r;
    random_init(&r, 5, 5);
    for (int i = 0; i < m->lora.n; i++) /* by tensors, since tables align differently */
        for (size_t k = 0; k < m->lora.tensor[i].count; k++)
            host[m->lora.tensor[i].at + k] =
                bf16_to_float(float_to_bf16((float)(0.1 * random_normal(&r))));
    m->ops->load(m->lora.data, host, m->lora.size);
    free(host);
}

/* Compare the gradients of two trainers, each in the layout of its table. */
static void compare(const Trainer *t, const float *got, const Trainer *u, const float *want)
{
    for (int i = 0; i < t->set->n; i++) {
        const Tensor *x = &t->set->tensor[i];
        const float *p = got + x->at, *q = want + u->set->tensor[i].at;
        double dot = 0, a = 0, b = 0;
        for (size_t k = 0; k < x->count; k++) {
            dot += (double)p[k] * (double)q[k];
            a += (double)p[k] * (double)p[k];
            b += (double)q[k] * (double)q[k];
        }
        assert_true(b > 0);
        if (!(dot / sqrt(a * b) > 0.99) || !(fabs(sqrt(a / b) - 1) < 0.015))
            fail_msg("%s: cosine %.5f, norm ratio %.4f (expected over 0.99 and 1 within 0.015)",
                     x->name, dot / sqrt(a * b), sqrt(a / b));
    }
}

static float *gradient(Trainer *t, LongTexts *x, double *loss)
{
    Error err;
    if (trainer_accumulate(t, x->seqs, MANY, long_weights, x, loss, &err)) fail_msg("%s", err.text);
    float *host = memory_array(t->set->size, sizeof *host);
    t->model->ops->download(host, t->grad, t->set->size * sizeof *host);
    return host;
}

static void check(const char *type, int lora)
{
    LongTexts x;
    Error err;
    make_long(&x);
    char *dir = make_base(type);
    Model *m[2] = {load_on(dir, ops_cpu()), load_on(dir, gpu)};
    double loss[4], difference = 0;
    float *grad[4], lp[2][LONG];
    for (int k = 0; k < 2; k++) {
        float *row = lp[k];
        if (lora) adapt_both(m[k]);
        if (model_logprobs(m[k], x.seqs, 1, &row, &err)) fail_msg("%s", err.text);
    }
    for (int t = 1; t < LONG; t++)
        difference += fabs((double)lp[0][t] - (double)lp[1][t]) / (LONG - 1);
    if (!(difference < 0.02))
        fail_msg("%s: log-probabilities differ by %.3g on average", type, difference);
    const TrainerOptions o[4] = {{.max_tokens = 150},
                                 {.max_tokens = 150, .recompute = RECOMPUTE_NO},
                                 {.max_tokens = 150, .recompute = RECOMPUTE_YES},
                                 {.max_tokens = 150, .fixed_weights = 1}};
    Trainer *t[4];
    for (int k = 0; k < 4; k++) {
        t[k] = trainer_of(m[k > 0], o[k]);
        grad[k] = gradient(t[k], &x, &loss[k]);
    }
    compare(t[1], grad[1], t[0], grad[0]);
    assert_true(fabs(loss[1] - loss[0]) < 0.01 * (1 + fabs(loss[0])));
    for (int k = 2; k < 4; k++) {
        assert_memory_equal(grad[k], grad[1], t[1]->set->size * sizeof **grad);
        assert_memory_equal(&loss[k], &loss[1], sizeof *loss);
    }
    for (int k = 0; k < 4; k++) {
        trainer_free(t[k]);
        free(grad[k]);
    }
    model_free(m[0]);
    model_free(m[1]);
    drop_dir(dir);
}

static void full(void **state)
{
    (void)state;
    check("qwen2", 0);
    check("qwen3", 0);
    check("llama", 0);
}

static void adapters(void **state)
{
    (void)state;
    check("qwen2", 1);
    check("qwen3", 1);
    check("llama", 1);
}

static void some_weights(void *ctx, int sequence, const float *logp, float *weight)
{
    (void)ctx, (void)logp;
    for (int t = 1; t < LONG; t++)
        weight[t] = t < 20 ? 0 : 0.001f * (float)(sequence % 5 - 2 + t % 3);
}

/* Twice the learning rate makes the effect of the rounding to bf16 three times as large: 0.4% after
 * ten steps, for any table that rounds. */
static double train(Trainer *t, LongTexts *x)
{
    static const AdamW optimiser = {
        .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .clip = 1};
    Error err;
    double loss, norm;
    if (trainer_accumulate(t, x->seqs, MANY, long_weights, x, &loss, &err) ||
        trainer_step(t, &optimiser, &norm, &err))
        fail_msg("%s", err.text);
    return loss;
}

static void mean_weights(LongTexts *x)
{
    for (int i = 0; i < MANY; i++)
        for (int t = 0; t < LONG; t++) x->weight[i][t] = t > 8 ? -0.003f : 0;
}

/* Ten steps of AdamW. Returns the largest relative difference of a loss to the CPU's. */
static double ten_steps_of(const char *type, int lora)
{
    LongTexts x;
    make_long(&x);
    mean_weights(&x);
    char *dir = make_base(type);
    Model *m[2] = {load_on(dir, ops_cpu()), load_on(dir, gpu)};
    Trainer *t[2];
    double first = 0, loss[2] = {0}, worst = 0;
    for (int k = 0; k < 2; k++) {
        if (lora) adapt_both(m[k]);
        t[k] = trainer_of(m[k], (TrainerOptions){.max_tokens = 150});
    }
    for (int i = 0; i < 10; i++) {
        for (int k = 0; k < 2; k++) loss[k] = train(t[k], &x);
        if (!i) first = loss[0];
        worst = fmax(worst, fabs(loss[1] / loss[0] - 1));
    }
    printf("# %s%s: losses of ten steps from %.4f to %.4f, within %.3f%% of the CPU's\n", type,
           lora ? ", an adapter" : "", first, loss[0], 100 * worst);
    assert_true(loss[0] < 0.98 * first);
    for (int k = 0; k < 2; k++) {
        trainer_free(t[k]);
        model_free(m[k]);
    }
    drop_dir(dir);
    return worst;
}

static void ten_steps(void **state)
{
    (void)state;
    double worst = ten_steps_of("qwen2", 0);
    worst = fmax(worst, ten_steps_of("qwen3", 0));
    worst = fmax(worst, ten_steps_of("llama", 0));
    worst = fmax(worst, ten_steps_of("qwen3", 1));
    assert_true(worst < 0.005);
}

static float *stored(const Num *p, size_t n)
{
    float *host = memory_array(n, sizeof *host);
    gpu->store(host, p, n);
    return host;
}

/* A run that is saved after 3 steps and continued has the same weights and losses. */
static void resume_of(int lora, int lean, Dtype dtype)
{
    enum { BEFORE = 3, AFTER = 3 };
    LongTexts x;
    Error err;
    make_long(&x);
    mean_weights(&x);
    char *base = make_base_of("qwen3", dtype), *dir = temp_dir(),
         *opt = memory_printf("%s/optimizer.safetensors", dir);
    Model *m = load_on(base, gpu);
    if (lora) adapt_both(m);
    Trainer *t = trainer_of(m, (TrainerOptions){.max_tokens = 150, .lean = lean});
    double first = train(t, &x), losses[AFTER];
    for (int i = 1; i < BEFORE; i++) train(t, &x);
    if (model_save(m, dir, &err) || trainer_save(t, opt, &err)) fail_msg("%s", err.text);
    float *saved = stored(t->set->data, t->set->size);
    for (int i = 0; i < AFTER; i++) losses[i] = train(t, &x);
    assert_true(losses[AFTER - 1] < first);
    Model *again = load_on(dir, gpu);
    Trainer *u = trainer_of(again, (TrainerOptions){.max_tokens = 150, .lean = lean});
    if (trainer_load(u, opt, &err)) fail_msg("%s", err.text);
    float *read = stored(u->set->data, u->set->size);
    assert_memory_equal(read, saved, t->set->size * sizeof *saved);
    for (int i = 0; i < AFTER; i++) {
        double loss = train(u, &x);
        assert_memory_equal(&loss, &losses[i], sizeof loss);
    }
    free(saved);
    free(read);
    trainer_free(t);
    trainer_free(u);
    model_free(m);
    model_free(again);
    free(opt);
    drop_dir(base);
    drop_dir(dir);
}

/* Check after = before + in W^T + inner B^T, [rows][n]. Rounding it to bf16 would exceed the limit
 * 100 times. */
static void compare_sum(const Model *m, const Linear *l, int rows, const float *before,
                        const float *after, const Num *in, const Num *inner)
{
    size_t n = (size_t)l->n, k = (size_t)l->k, r = (size_t)l->u, all = (size_t)rows * n;
    float *x = memory_array(all, sizeof *x), *y = memory_array(all, sizeof *y),
          *a = stored(in, (size_t)rows * k);
    float *u = stored(inner, (size_t)rows * r), *w = stored(weight_at(m, l->weight), n * k);
    float *b = stored(num_at(gpu, m->lora.data, l->part[0].b), n * r);
    double off = 0, size = 0;
    gpu->download(x, before, all * sizeof *x);
    gpu->download(y, after, all * sizeof *y);
    for (size_t i = 0; i < all; i++) {
        double sum = (double)x[i];
        for (size_t j = 0; j < k; j++) sum += (double)a[i / n * k + j] * (double)w[i % n * k + j];
        for (size_t j = 0; j < r; j++) sum += (double)u[i / n * r + j] * (double)b[i % n * r + j];
        off += (sum - (double)y[i]) * (sum - (double)y[i]);
        size += sum * sum;
    }
    if (!(sqrt(off / size) < 1e-5))
        fail_msg("the residual stream is off by %.2g of its size", sqrt(off / size));
    free(x), free(y), free(a), free(u), free(w), free(b);
}

/* Adapters on all projections: the terms of o and down are added to the residual stream in fp32,
 * without rounding. */
static void residual(void **state)
{
    (void)state;
    Error err;
    LongTexts x;
    TokenBatch batch = {0};
    Acts a = {0};
    make_long(&x);
    char *dir = make_base("llama");
    Model *m = load_on(dir, gpu);
    adapt_both(m);
    batch_pack(&batch, gpu, x.seqs, MANY);
    acts_reserve(&a, m, batch.rows, KEEP_ALL);
    forward_hidden(m, &a, &batch, NULL, NULL);
    for (int i = 0; i < m->c.layers; i++) {
        const LayerActs *l = &a.layer[i];
        compare_sum(m, &m->layer[i].o, batch.rows, l->x, l->mid, l->att, l->u_o);
        compare_sum(m, &m->layer[i].down, batch.rows, l->mid,
                    i + 1 < m->c.layers ? a.layer[i + 1].x : a.out, l->act, l->u_down);
    }
    if (gpu->status(&err)) fail_msg("%s", err.text);
    acts_release(&a, m);
    batch_release(&batch, gpu);
    model_free(m);
    drop_dir(dir);
}

/* More rows than a piece of logits: in one pass, piece by piece, the gradient is the same as from
 * logits kept whole. */
static void pieces(void **state)
{
    (void)state;
    Error err;
    char *dir = make_base("qwen2");
    Model *m = load_on(dir, gpu);
    adapt_both(m);
    int32_t ids[HUGE_MANY][LONG];
    Sequence seqs[HUGE_MANY];
    Random r;
    random_init(&r, 12, 0);
    for (int i = 0; i < HUGE_MANY; i++) {
        seqs[i] = (Sequence){ids[i], LONG};
        for (int t = 0; t < LONG; t++) ids[i][t] = (int32_t)random_below(&r, VOCAB);
    }
    Trainer *t[2] = {
        trainer_of(m, (TrainerOptions){.max_tokens = HUGE_MANY * LONG}),
        trainer_of(m, (TrainerOptions){.max_tokens = HUGE_MANY * LONG, .fixed_weights = 1})};
    double loss[2];
    float *grad[2];
    for (int k = 0; k < 2; k++) {
        if (trainer_accumulate(t[k], seqs, HUGE_MANY, some_weights, NULL, &loss[k], &err))
            fail_msg("%s", err.text);
        grad[k] = memory_array(t[k]->set->size, sizeof **grad);
        gpu->download(grad[k], t[k]->grad, t[k]->set->size * sizeof **grad);
    }
    assert_true(t[0]->acts.logit_rows == HUGE_MANY * LONG &&
                t[1]->acts.logit_rows < HUGE_MANY * LONG);
    compare(t[1], grad[1], t[0], grad[0]);
    assert_true(loss[0] != 0 && fabs(loss[0] - loss[1]) < 1e-3 * fabs(loss[0]));
    for (int k = 0; k < 2; k++) {
        trainer_free(t[k]);
        free(grad[k]);
    }
    model_free(m);
    drop_dir(dir);
}

static void resume(void **state)
{
    (void)state;
    resume_of(0, 0, DTYPE_BF16);
    resume_of(0, 1, DTYPE_BF16);
    resume_of(1, 0, DTYPE_BF16);
    resume_of(0, 0,
              DTYPE_F16); /* its smallest numbers are coarser than those of the weights in memory */
    resume_of(0, 1, DTYPE_F16);
}

static int run_training_tests(void)
{
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(full),      cmocka_unit_test(adapters),
                                       cmocka_unit_test(residual),  cmocka_unit_test(pieces),
                                       cmocka_unit_test(ten_steps), cmocka_unit_test(resume)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
