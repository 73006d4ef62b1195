/* The engine against transformers and peft: logits, log-probabilities, gradients and ten AdamW
 * steps of tiny models of the three families, full and with adapters, as computed in fp32 by
 * tests/fixtures/make_engine.py. It runs on the CPU, and on the first GPU if there is one, with the
 * tolerances of bf16.
 *
 * tests/peers/engine_check.py uses the program for larger models:
 *
 *  test_engine_fixtures --logits DEVICE DIR IDS.json OUT.safetensors
 *      writes logits [rows][vocab] of the packed sequences
 *  test_engine_fixtures --train DEVICE DIR IDS.json OUT_DIR RANK STEPS
 *      trains (an adapter of that rank; 0: the weights) and saves */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "fixture_support.h"
#include "model/core/lora.h"
#include "model/cpu/ops_cpu.h"
#include "model/files/model_files.h"
#include "model/files/safetensors.h"
#include "model/model_device.h"
#include "model/trainer_state.h"
#include "tests/fixture_path.h"

static const char *const names[] = {"qwen2", "qwen2-yarn", "qwen3", "llama3", "llama-f32"};
enum { MODELS = sizeof names / sizeof *names };

/* The tolerances of bf16. The bf16 of transformers itself has a KL of 2e-4 to 3e-4 to its fp32 on
 * these models, and gradients of cosine 0.9987. A KL of 4e-4 corresponds to log-probabilities that
 * differ by sqrt(2 KL) = 0.028, and by 0.8 of it on average. */
typedef struct {
    const Ops *ops;
    int exact;                 /* fp32 */
    double logits, kl, cosine; /* largest difference; mean; of any row */
    double logprobs;           /* mean difference */
    double grad_cosine, grad_norm, grad_floor, loss;
} Device;

static const Device cpu = {.exact = 1,
                           .logits = 1e-4,
                           .kl = 1e-9,
                           .cosine = 0.9999999,
                           .logprobs = 1e-5,
                           .grad_cosine = 0.99999,
                           .grad_norm = 1e-4,
                           .grad_floor = 1e-7,
                           .loss = 1e-5};
static const Device gpu = {.logits = 0.3,
                           .kl = 4e-4,
                           .cosine = 0.999,
                           .logprobs = 2.3e-2,
                           .grad_cosine = 0.99,
                           .grad_norm = 0.015,
                           .grad_floor = 1e-3,
                           .loss = 5e-3};

/* Fill in the CPU, then a usable GPU if there is one. Returns their number. */
static int devices(Device out[2])
{
    Error err;
    out[0] = cpu;
    out[1] = gpu;
    out[0].ops = ops_cpu();
    int n = model_device("cuda:0", &out[1].ops, &err) ? 1 : 2;
    if (n == 1) printf("# no GPU: %s\n", err.text);
    return n;
}

typedef struct {
    const char *name;
    char *dir;
    json_t *doc;
    Safetensors *expected;
    Ids ids;
    Model *m;
    int index; /* index over all cases */
} Case;

static double number(const json_t *doc, const char *key)
{
    return json_number_value(json_object_get(doc, key));
}

static double number_at(const json_t *list, int i)
{
    return json_number_value(json_array_get(list, (size_t)i));
}

static Case case_open(const char *name, const Ops *ops, int adapter)
{
    Error err;
    Case c = {.name = name,
              .dir = memory_printf("%s/%s", fixture_path("tests/fixtures/engine"), name)};
    char *doc = memory_printf("%s/expected.json", c.dir),
         *tensors = memory_printf("%s/expected.safetensors", c.dir);
    char *dir = memory_printf("%s%s", c.dir, adapter ? "/adapter" : "");
    c.doc = json_read_file(doc, 1 << 20, &err);
    if (!c.doc || safetensors_open(tensors, &c.expected, &err) || model_load(dir, ops, &c.m, &err))
        fail_msg("%s", err.text);
    c.ids = ids_of(c.doc);
    assert_true(c.ids.n == 4 && c.ids.rows > 60);
    free(doc);
    free(tensors);
    free(dir);
    return c;
}

static void case_close(Case *c)
{
    ids_release(&c->ids);
    json_decref(c->doc);
    safetensors_close(c->expected);
    model_free(c->m);
    free(c->dir);
}

static float *expected(const Case *c, const char *prefix, const char *name, size_t *n)
{
    char *full = memory_printf("%s%s", prefix, name);
    const SafetensorsTensor *t = safetensors_find(c->expected, full);
    if (!t) fail_msg("%s: the fixture has no %s", c->name, full);
    float *x = memory_array(t->elements, sizeof *x);
    safetensors_floats(t, 0, t->elements, x);
    *n = t->elements;
    free(full);
    return x;
}

typedef struct {
    double worst, cosine, norm; /* largest difference, cosine, norm of the first vector */
} Difference;

static Difference difference(const float *a, const float *b, size_t n)
{
    double ab = 0, aa = 0, bb = 0;
    Difference d = {0};
    for (size_t i = 0; i < n; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
        d.worst = fmax(d.worst, fabs((double)a[i] - (double)b[i]));
    }
    d.cosine = ab / sqrt(aa * bb);
    d.norm = sqrt(aa);
    return d;
}

static double log_sum(const float *z, int n)
{
    double top = (double)z[0], sum = 0;
    for (int i = 1; i < n; i++) top = fmax(top, (double)z[i]);
    for (int i = 0; i < n; i++) sum += exp((double)z[i] - top);
    return top + log(sum);
}

/* KL(want, got) of two rows of logits. */
static double divergence(const float *got, const float *want, int n)
{
    double a = log_sum(want, n), b = log_sum(got, n), kl = 0;
    for (int i = 0; i < n; i++) {
        double p = (double)want[i] - a;
        kl += exp(p) * (p - ((double)got[i] - b));
    }
    return kl;
}

static void compare_logits(const Device *d, const Case *c, const char *tensor)
{
    Error err;
    int vocab = model_config(c->m)->vocab;
    size_t n;
    float *want = expected(c, tensor, "", &n), *got = logits_of(c->m, &c->ids, &err);
    if (!got) fail_msg("%s", err.text);
    size_t rows = n / (size_t)vocab;
    assert_true(n % (size_t)vocab == 0 && rows <= (size_t)c->ids.rows);
    double worst = 0, cosine = 1, kl = 0;
    for (size_t r = 0; r < rows; r++) {
        const float *a = got + r * (size_t)vocab, *b = want + r * (size_t)vocab;
        Difference x = difference(a, b, (size_t)vocab);
        worst = fmax(worst, x.worst);
        cosine = fmin(cosine, x.cosine);
        kl += divergence(a, b, vocab) / (double)rows;
    }
    printf("# %s %s %s: largest difference %.2g, smallest cosine %.8f, mean KL %.2g\n",
           d->ops->name, c->name, tensor, worst, cosine, kl);
    assert_true(worst < d->logits && cosine > d->cosine && kl < d->kl);
    free(want);
    free(got);
}

static void compare_logprobs(const Device *d, const Case *c, const char *key)
{
    Error err;
    float **got = memory_array((size_t)c->ids.n, sizeof *got);
    for (int i = 0; i < c->ids.n; i++)
        got[i] = memory_array((size_t)c->ids.seqs[i].len, sizeof **got);
    if (model_logprobs(c->m, c->ids.seqs, c->ids.n, got, &err)) fail_msg("%s", err.text);
    double sum = 0;
    int n = 0;
    for (int i = 0; i < c->ids.n; i++)
        for (int t = 1; t < c->ids.seqs[i].len; t++, n++)
            sum += fabs((double)got[i][t] -
                        number_at(json_array_get(json_object_get(c->doc, key), (size_t)i), t));
    printf("# %s %s %s: mean difference %.2g\n", d->ops->name, c->name, key, sum / n);
    assert_true(sum / n < d->logprobs);
    for (int i = 0; i < c->ids.n; i++) free(got[i]);
    free(got);
}

/* Every model on every device, without an adapter and with one. */
static void each_case(void (*compare)(const Device *d, const Case *c, int adapter))
{
    Device d[2];
    int n = devices(d);
    for (int i = 0; i < n * MODELS * 2; i++) {
        int adapter = i / (n * MODELS);
        Case c = case_open(names[i % MODELS], d[i / MODELS % n].ops, adapter);
        c.index = i;
        compare(&d[i / MODELS % n], &c, adapter);
        case_close(&c);
    }
}

static void compare_forward(const Device *d, const Case *c, int adapter)
{
    compare_logits(d, c, adapter ? "lora_logits" : "logits");
    compare_logprobs(d, c, adapter ? "lora_logprobs" : "logprobs");
}

static void forward(void **state)
{
    (void)state;
    each_case(compare_forward);
}

static void given(void *ctx, int sequence, const float *logp, float *weight)
{
    const Ids *x = ctx;
    (void)logp;
    memcpy(weight, x->weights[sequence], (size_t)x->seqs[sequence].len * sizeof *weight);
}

/* Compare the gradient of every tensor. A norm may differ by the relative tolerance, or by
 * grad_floor of the norm of the whole gradient: the gradients of key biases are nearly 0, and in
 * bf16 only rounding. */
static void compare_gradients(const Device *d, const Case *c, const char *prefix, const Trainer *t)
{
    const ParamSet *set = t->set;
    const json_t *norms = json_object_get(c->doc,
                                          t->model->lora.size ? "lora_grad_norms" : "grad_norms"),
                 *v;
    const char *name;
    double worst = 0, cosine = 1, all = 0;
    float *grad = memory_array(set->size, sizeof *grad);
    d->ops->download(grad, t->grad, set->size * sizeof *grad);
    assert_int_equal(json_object_size(norms), set->n);
    json_object_foreach((json_t *)norms, name, v) all = hypot(all, json_number_value(v));
    for (int i = 0; i < set->n; i++) {
        const Tensor *x = &set->tensor[i];
        size_t n;
        float *want = expected(c, prefix, x->name, &n);
        assert_int_equal(n, x->count);
        Difference diff = difference(grad + x->at, want, n);
        double norm = number(norms, x->name), off = fabs(diff.norm - norm);
        if (!(diff.cosine > d->grad_cosine) ||
            !(off < d->grad_norm * norm || off < d->grad_floor * all))
            fail_msg("%s %s: %s has cosine %.6f, norm %.4g, expected %.4g", d->ops->name, c->name,
                     x->name, diff.cosine, diff.norm, norm);
        worst = fmax(worst, off / norm);
        cosine = fmin(cosine, diff.cosine);
        free(want);
    }
    printf("# %s %s: %d gradients, smallest cosine %.7f, norms within %.2g\n", d->ops->name,
           c->name, set->n, cosine, worst);
    free(grad);
}

/* The gradient of sum w logp, in two micro-batches; every other model recomputes its
 * activations. */
static void check_gradients(const Device *d, const Case *c, int adapter)
{
    Error err;
    TrainerOptions o = {.max_tokens = 64, .recompute = c->index % 2 ? RECOMPUTE_YES : RECOMPUTE_NO};
    Trainer *t;
    Ids x = c->ids;
    double loss, want = 0, scale = 0;
    if (trainer_create(c->m, &o, &t, &err) ||
        trainer_accumulate(t, x.seqs, x.n, given, &x, &loss, &err))
        fail_msg("%s", err.text);
    const json_t *logp = json_object_get(c->doc, adapter ? "lora_logprobs" : "logprobs");
    for (int s = 0; s < x.n; s++)
        for (int k = 1; k < x.seqs[s].len; k++) {
            double term = (double)x.weights[s][k] * number_at(json_array_get(logp, (size_t)s), k);
            want += term;
            scale += fabs(term);
        }
    assert_true(fabs(loss - want) < d->loss * scale);
    compare_gradients(d, c, adapter ? "lora_grad." : "grad.", t);
    trainer_free(t);
}

static void gradients(void **state)
{
    (void)state;
    each_case(check_gradients);
}

/* -1 / tokens for every token but the first of a sequence: the mean cross-entropy. */
static void mean_loss(void *ctx, int sequence, const float *logp, float *weight)
{
    const Ids *x = ctx;
    (void)logp;
    for (int t = 1; t < x->seqs[sequence].len; t++) weight[t] = -1.0f / (float)(x->rows - x->n);
}

static void compare_steps(const Device *d, const Case *c, int adapter)
{
    const char *key = adapter ? "lora" : "full";
    const json_t *want = json_object_get(c->doc, key), *adam = json_object_get(c->doc, "adam");
    const json_t *losses = json_object_get(want, "losses"), *norms = json_object_get(want, "norms");
    AdamW opt = {.lr = number(adam, "lr"),
                 .beta1 = number(adam, "beta1"),
                 .beta2 = number(adam, "beta2"),
                 .eps = number(adam, "eps"),
                 .clip = number(adam, "clip"),
                 .weight_decay = number(want, "decay")};
    TrainerOptions o = {.max_tokens = 41, .recompute = RECOMPUTE_NO};
    Trainer *t;
    Error err;
    double worst = 0, worst_norm = 0, loss, norm;
    if (trainer_create(c->m, &o, &t, &err)) fail_msg("%s", err.text);
    assert_int_equal(json_array_size(losses), 10);
    for (int s = 0; s < 10; s++) {
        int first = 2 * (s % 2); /* two sequences, alternating */
        Ids two = {.seqs = c->ids.seqs + first,
                   .n = 2,
                   .rows = c->ids.seqs[first].len + c->ids.seqs[first + 1].len};
        if (trainer_accumulate(t, two.seqs, 2, mean_loss, &two, &loss, &err) ||
            trainer_step(t, &opt, &norm, &err))
            fail_msg("%s", err.text);
        worst = fmax(worst, fabs(loss / number_at(losses, s) - 1));
        worst_norm = fmax(worst_norm, fabs(norm / number_at(norms, s) - 1));
    }
    printf("# %s %s, %s: ten steps, losses within %.2g, norms within %.2g\n", d->ops->name, c->name,
           key, worst, worst_norm);
    assert_true(worst < d->loss);
    assert_true(worst_norm < (d->exact ? 1e-4 : 5e-2));
    trainer_free(t);
}

static void ten_steps(void **state)
{
    (void)state;
    each_case(compare_steps);
}

/* The end tokens of both files, once each. */
static void end_tokens(void **state)
{
    (void)state;
    Case c = case_open("qwen3", ops_cpu(), 0);
    const ModelConfig *k = model_config(c.m);
    assert_true(k->n_eos == 2 && k->eos[0] + k->eos[1] == 3);
    case_close(&c);
}

/* ---- for engine_check.py ---- */

static int write_logits(char **a, Error *err)
{
    const Ops *ops;
    Model *m = NULL;
    json_t *doc = json_read_file(a[2], 1 << 26, err);
    if (!doc || model_device(a[0], &ops, err) || model_load(a[1], ops, &m, err)) {
        json_decref(doc);
        return -1;
    }
    Ids x = ids_of(doc);
    float *logits = logits_of(m, &x, err);
    SafetensorsOut out = {
        .name = "logits", .rank = 2, .shape = {x.rows, model_config(m)->vocab}, .data = logits};
    int rc = logits ? safetensors_write(a[3], &out, 1, DTYPE_F32, err) : -1;
    free(logits);
    ids_release(&x);
    json_decref(doc);
    model_free(m);
    return rc;
}

static int train(Model *m, Ids *x, int rank, int steps, const char *dir, Error *err)
{
    LoraOptions lora = {.rank = rank, .alpha = 2.0 * rank, .targets = LORA_ALL, .seed = 1};
    AdamW opt = {.lr = rank ? 1e-3 : 1e-5, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .clip = 1};
    TrainerOptions o = {.max_tokens = 1024};
    Trainer *t = NULL;
    double loss = 0, norm;
    int rc = (rank && model_add_lora(m, &lora, err)) || trainer_create(m, &o, &t, err) ? -1 : 0;
    for (int s = 0; !rc && s < steps; s++) {
        rc = trainer_accumulate(t, x->seqs, x->n, mean_loss, x, &loss, err) ||
                     trainer_step(t, &opt, &norm, err)
                 ? -1
                 : 0;
        if (!rc) printf("%.6f%s", loss, s + 1 < steps ? " " : "\n");
    }
    trainer_free(t);
    return rc || file_mkdirs(dir, err) || model_save(m, dir, err) ? -1 : 0;
}

static int train_and_save(char **a, Error *err)
{
    const Ops *ops;
    Model *m = NULL;
    json_t *doc = json_read_file(a[2], 1 << 26, err);
    if (!doc || model_device(a[0], &ops, err) || model_load(a[1], ops, &m, err)) {
        json_decref(doc);
        return -1;
    }
    Ids x = ids_of(doc);
    int rc = train(m, &x, atoi(a[4]), atoi(a[5]), a[3], err);
    ids_release(&x);
    json_decref(doc);
    model_free(m);
    return rc;
}

int main(int argc, char **argv)
{
    Error err;
    int rc = 0, tool = argc > 1;
    if (argc == 6 && !strcmp(argv[1], "--logits"))
        rc = write_logits(argv + 2, &err);
    else if (argc == 8 && !strcmp(argv[1], "--train"))
        rc = train_and_save(argv + 2, &err);
    else if (tool)
        return 2;
    if (rc) fprintf(stderr, "%s\n", err.text);
    if (tool) return rc ? 1 : 0;
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(forward), cmocka_unit_test(gradients),
                                       cmocka_unit_test(ten_steps), cmocka_unit_test(end_tokens)};
    return cmocka_run_group_tests_name("engine fixtures", tests, NULL, NULL);
}
