/* Training: the loss decreases, rewarded tokens win, resume is exact, threads do not change
 * results, and bad configurations are refused by the field's name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/random.h"
#include "model/cpu/ops_cpu.h"
#include "model/files/model_files.h"
#include "model/sampler.h"
#include "model/trainer_state.h"

enum { N = 6, LEN = 40, VOCAB = 50 };

static const AdamW optimiser = {
    .lr = 3e-3, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .weight_decay = 0.01, .clip = 1};

static Model *small(uint64_t seed)
{
    ModelConfig c = {.model_type = "qwen2",
                     .vocab = VOCAB,
                     .hidden = 48,
                     .ff = 96,
                     .layers = 2,
                     .heads = 4,
                     .kv_heads = 2,
                     .head_dim = 16,
                     .max_position = 128,
                     .rope_theta = 10000,
                     .norm_eps = 1e-6f,
                     .tied = 1,
                     .qkv_bias = 1,
                     .eos = {1},
                     .n_eos = 1,
                     .pad = 0};
    Error err;
    Model *m;
    if (model_create(&c, ops_cpu(), seed, &m, &err)) fail_msg("%s", err.text);
    return m;
}

typedef struct {
    int32_t ids[N][LEN];
    Sequence seqs[N];
} Text;

/* Structured sequences: each token is a function of the two before it. */
static void make_text(Text *x)
{
    for (int i = 0; i < N; i++) {
        x->ids[i][0] = i;
        x->ids[i][1] = 2 * i + 1;
        for (int t = 2; t < LEN; t++)
            x->ids[i][t] = (x->ids[i][t - 1] + 3 * x->ids[i][t - 2] + 1) % VOCAB;
        x->seqs[i] = (Sequence){x->ids[i], LEN - i};
    }
}

static void mean_loss(void *ctx, int sequence, const float *logp, float *weight)
{
    const Text *x = ctx;
    (void)logp;
    for (int t = 1; t < x->seqs[sequence].len; t++) weight[t] = -1.0f / (N * LEN);
}

static double step(Trainer *t, Text *x, double *norm)
{
    Error err;
    double loss;
    if (trainer_accumulate(t, x->seqs, N, mean_loss, x, &loss, &err) ||
        trainer_step(t, &optimiser, norm, &err))
        fail_msg("%s", err.text);
    return loss;
}

static void loss_falls(void **state)
{
    (void)state;
    Text x;
    make_text(&x);
    Model *m = small(1);
    Trainer *t;
    Error err;
    double norm, first, last = 0;
    assert_int_equal(trainer_create(m, &(TrainerOptions){.max_tokens = 100}, &t, &err), 0);
    first = step(t, &x, &norm);
    assert_true(fabs(first - 3.4) < 0.6); /* near log(50) times the share of weighted tokens */
    for (int i = 0; i < 80; i++) last = step(t, &x, &norm);
    if (!(last < 0.1 * first)) fail_msg("the loss went from %g to %g", first, last);
    trainer_free(t);
    model_free(m);
}

/* Two steps against the formulas in double: clipping, bias correction, decay of projections
 * only. */
static void adamw_formula(void **state)
{
    (void)state;
    Text x;
    make_text(&x);
    Model *m = small(6);
    Trainer *t;
    Error err;
    assert_int_equal(trainer_create(m, &(TrainerOptions){.max_tokens = 100}, &t, &err), 0);
    AdamW o = optimiser;
    o.weight_decay = 0.5;
    o.clip = 0.05;
    double *p = memory_array(m->base.size, sizeof *p), *a = memory_array(m->base.size, sizeof *a),
           *b = memory_array(m->base.size, sizeof *b);
    for (size_t i = 0; i < m->base.size; i++) p[i] = (double)((float *)m->base.data)[i];
    for (int k = 1; k <= 2; k++) {
        double loss, norm, sum = 0, scale;
        assert_int_equal(trainer_accumulate(t, x.seqs, N, mean_loss, &x, &loss, &err), 0);
        for (size_t i = 0; i < m->base.size; i++) sum += (double)t->grad[i] * (double)t->grad[i];
        scale = o.clip / sqrt(sum);
        assert_true(scale < 1);
        for (int n = 0; n < m->base.n; n++) {
            const Tensor *w = &m->base.tensor[n];
            assert_int_equal(w->decay, w->rank == 2 && !strstr(w->name, "embed"));
            for (size_t i = w->at; i < w->at + w->count; i++) {
                double g = (double)t->grad[i] * scale;
                a[i] = o.beta1 * a[i] + (1 - o.beta1) * g;
                b[i] = o.beta2 * b[i] + (1 - o.beta2) * g * g;
                double mean = a[i] / (1 - pow(o.beta1, k)), square = b[i] / (1 - pow(o.beta2, k));
                p[i] -=
                    o.lr * (mean / (sqrt(square) + o.eps) + (w->decay ? o.weight_decay * p[i] : 0));
            }
        }
        assert_int_equal(trainer_step(t, &o, &norm, &err), 0);
        assert_true(fabs(norm / sqrt(sum) - 1) < 1e-9);
        for (size_t i = 0; i < m->base.size; i++) {
            assert_true(fabs((double)((float *)m->base.data)[i] - p[i]) < 3e-6);
            assert_true(t->grad[i] == 0);
        }
    }
    free(p);
    free(a);
    free(b);
    trainer_free(t);
    model_free(m);
}

static char *temp_dir(void)
{
    char *dir = memory_strdup("/tmp/quern-model-test.XXXXXX");
    assert_non_null(mkdtemp(dir));
    return dir;
}

static void exact_resume(void **state)
{
    (void)state;
    enum { BEFORE = 5, AFTER = 5 };
    Text x;
    make_text(&x);
    char *dir = temp_dir(), *opt = memory_printf("%s/optimizer.safetensors", dir);
    Model *m = small(2), *again;
    Trainer *t, *u;
    Error err;
    double norm, straight[AFTER], norms[AFTER];
    assert_int_equal(trainer_create(m, &(TrainerOptions){.max_tokens = 100}, &t, &err), 0);
    for (int i = 0; i < BEFORE; i++) step(t, &x, &norm);
    if (model_save(m, dir, &err) || trainer_save(t, opt, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < AFTER; i++) straight[i] = step(t, &x, &norms[i]);

    if (model_load(dir, ops_cpu(), &again, &err)) fail_msg("%s", err.text);
    assert_memory_equal(model_config(again), model_config(m), sizeof(ModelConfig));
    assert_int_equal(trainer_create(again, &(TrainerOptions){.max_tokens = 100}, &u, &err), 0);
    if (trainer_load(u, opt, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < AFTER; i++) {
        double loss = step(u, &x, &norm);
        assert_memory_equal(&loss, &straight[i], sizeof loss);
        assert_memory_equal(&norm, &norms[i], sizeof norm);
    }
    assert_memory_equal(again->base.data, m->base.data, m->base.size * sizeof(float));
    trainer_free(u);
    model_free(again);
    trainer_free(t);
    model_free(m);
    assert_int_equal(file_remove_tree(dir, &err), 0);
    free(opt);
    free(dir);
}

/* A child process with another number of threads prints the digest of its weights after three
 * steps. */
static uint64_t digest_after_training(const char *threads)
{
    int fd[2];
    assert_int_equal(pipe(fd), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        char value[32];
        setenv("QUERN_CPU", threads, 1);
        snprintf(value, sizeof value, "%d", fd[1]);
        execl("/proc/self/exe", "test_trainer", "digest", value, (char *)NULL);
        _exit(127);
    }
    close(fd[1]);
    uint64_t digest = 0;
    ssize_t got = read(fd[0], &digest, sizeof digest);
    close(fd[0]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(got, sizeof digest);
    return digest;
}

static int print_digest(int fd)
{
    ModelConfig c = {.model_type = "qwen2",
                     .vocab = 300,
                     .hidden = 96,
                     .ff = 200,
                     .layers = 2,
                     .heads = 6,
                     .kv_heads = 2,
                     .head_dim = 16,
                     .max_position = 256,
                     .rope_theta = 10000,
                     .norm_eps = 1e-6f,
                     .tied = 1,
                     .qkv_bias = 1,
                     .pad = -1};
    Error err;
    Model *m;
    Trainer *t;
    Text x;
    double norm;
    make_text(&x);
    if (model_create(&c, ops_cpu(), 7, &m, &err) ||
        trainer_create(m, &(TrainerOptions){.max_tokens = 4096}, &t, &err))
        return 1;
    for (int i = 0; i < 3; i++) step(t, &x, &norm);
    uint64_t digest = random_hash(m->base.data, m->base.size * sizeof(float));
    trainer_free(t);
    model_free(m);
    return write(fd, &digest, sizeof digest) != sizeof digest;
}

static void threads_change_nothing(void **state)
{
    (void)state;
    uint64_t one = digest_after_training("threads=1");
    assert_int_equal(digest_after_training("threads=1"), one);
    assert_int_equal(digest_after_training("threads=2"), one);
    assert_int_equal(digest_after_training("threads=3"), one);
}

/* ---- a bandit: after the prompt {0} token 7 has reward 1, token 9 has 0.3, the others have 0
 * ---- */

static void probabilities(Model *m, float *p)
{
    int32_t ids[VOCAB][2];
    Sequence seqs[VOCAB];
    float logp[VOCAB][2], *rows[VOCAB];
    Error err;
    for (int i = 0; i < VOCAB; i++) {
        ids[i][0] = 0;
        ids[i][1] = i;
        seqs[i] = (Sequence){ids[i], 2};
        rows[i] = logp[i];
    }
    if (model_logprobs(m, seqs, VOCAB, rows, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < VOCAB; i++) p[i] = expf(logp[i][1]);
}

typedef struct {
    int32_t ids[512][2];
    float advantage[512];
} Pulls;

static void pull(void *ctx, int request, int copy, const int32_t *ids, const float *logp, int n,
                 int stopped)
{
    Pulls *b = ctx;
    (void)request, (void)logp, (void)n, (void)stopped;
    b->ids[copy][1] = ids[0];
    b->advantage[copy] = ids[0] == 7 ? 1 : ids[0] == 9 ? 0.3f : 0;
}

static void reinforce(void *ctx, int sequence, const float *logp, float *weight)
{
    (void)logp;
    weight[1] = -((Pulls *)ctx)->advantage[sequence] / 512;
}

static void bandit(void **state)
{
    (void)state;
    Model *m = small(3);
    Trainer *t;
    Error err;
    assert_int_equal(trainer_create(m, &(TrainerOptions){.max_tokens = 4096}, &t, &err), 0);
    float before[VOCAB], after[VOCAB];
    probabilities(m, before);
    Pulls *b = memory_alloc(sizeof *b);
    uint64_t seeds[512];
    Sequence seqs[512];
    int32_t prompt[1] = {0};
    SampleOptions opt = {.temperature = 1, .top_p = 1, .max_new = 1, .batch = 64};
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 512; i++) seeds[i] = (uint64_t)round * 512 + (uint64_t)i;
        SampleRequest req = {prompt, 1, 512, seeds};
        if (model_sample(m, &req, 1, &opt, pull, b, &err)) fail_msg("%s", err.text);
        for (int i = 0; i < 512; i++) {
            b->ids[i][0] = 0;
            seqs[i] = (Sequence){b->ids[i], 2};
        }
        double loss, norm;
        if (trainer_accumulate(t, seqs, 512, reinforce, b, &loss, &err) ||
            trainer_step(t, &optimiser, &norm, &err))
            fail_msg("%s", err.text);
    }
    probabilities(m, after);
    if (!(before[7] < 0.1f && after[7] > 0.8f && after[7] > 10 * after[9]))
        fail_msg("the best arm went from %g to %g, the second best to %g", (double)before[7],
                 (double)after[7], (double)after[9]);
    free(b);
    trainer_free(t);
    model_free(m);
}

static void poison(void *ctx, int sequence, const float *logp, float *weight)
{
    (void)ctx, (void)sequence, (void)logp;
    weight[1] = NAN;
}

static void not_finite(void **state)
{
    (void)state;
    Text x;
    make_text(&x);
    Model *m = small(4);
    Trainer *t;
    Error err;
    double loss, norm;
    assert_int_equal(trainer_create(m, &(TrainerOptions){.max_tokens = 100}, &t, &err), 0);
    step(t, &x, &norm);
    float *before = memory_array(m->base.size, sizeof *before);
    memcpy(before, m->base.data, m->base.size * sizeof *before);
    assert_int_equal(trainer_accumulate(t, x.seqs, 1, poison, NULL, &loss, &err), 0);
    assert_int_equal(trainer_step(t, &optimiser, &norm, &err), -1);
    assert_non_null(strstr(err.text, "not finite"));
    assert_memory_equal(before, m->base.data, m->base.size * sizeof *before);
    assert_int_equal(t->step, 1);
    free(before);
    trainer_free(t);
    model_free(m);
}

static void refuse(const char *change, const char *field)
{
    char text[1024];
    ModelConfig c;
    Error err;
    snprintf(text, sizeof text,
             "{\"model_type\": \"qwen2\", \"vocab_size\": 100, \"hidden_size\": 64, "
             "\"intermediate_size\": 128, "
             "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
             "\"rms_norm_eps\": 1e-6, "
             "\"max_position_embeddings\": 512, \"tie_word_embeddings\": true, \"hidden_act\": "
             "\"silu\", "
             "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 5e5}, "
             "\"eos_token_id\": [3, 4]%s%s}",
             *change ? ", " : "", change);
    int rc = model_config_parse(text, strlen(text), "config.json", &c, &err);
    if (!field) {
        if (rc) fail_msg("%s", err.text);
        assert_int_equal(c.head_dim, 16);
        assert_int_equal(c.n_eos, 2);
        assert_true(c.rope_theta == 5e5f && c.qkv_bias && c.tied);
        return;
    }
    assert_int_equal(rc, -1);
    if (!strstr(err.text, field)) fail_msg("\"%s\" does not name %s", err.text, field);
}

static void configs(void **state)
{
    (void)state;
    refuse("", NULL);
    refuse("\"use_sliding_window\": true", "use_sliding_window");
    refuse("\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4}", "rope_scaling");
    refuse("\"attention_bias\": true", "attention_bias");
    refuse("\"layer_types\": [\"full_attention\", \"sliding_attention\"]", "layer_types[1]");
    refuse("\"head_dim\": 15", "head_dim");
    refuse("\"pad_token_id\": 100", "pad_token_id");
    refuse("\"quantization_config\": {}", "quantization_config");
    Error err;
    ModelConfig c, d;
    const char *mixture = "{\"model_type\": \"qwen2_moe\"}";
    assert_int_equal(model_config_parse(mixture, strlen(mixture), "config.json", &c, &err), -1);
    assert_non_null(strstr(err.text, "qwen2_moe"));

    Model *m = small(1);
    Buffer text;
    buffer_init(&text, 1 << 16);
    model_config_print(&m->c, &text);
    assert_int_equal(model_config_parse(text.data, text.len, "config.json", &d, &err), 0);
    assert_memory_equal(&d, &m->c, sizeof d);
    buffer_release(&text);
    model_free(m);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "digest")) return print_digest(atoi(argv[2]));
    cmocka_set_message_output(CM_OUTPUT_TAP);
    const struct CMUnitTest tests[] = {cmocka_unit_test(loss_falls),
                                       cmocka_unit_test(adamw_formula),
                                       cmocka_unit_test(exact_resume),
                                       cmocka_unit_test(bandit),
                                       cmocka_unit_test(threads_change_nothing),
                                       cmocka_unit_test(not_finite),
                                       cmocka_unit_test(configs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
