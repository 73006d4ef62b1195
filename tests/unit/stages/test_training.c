/* The training loop: a run that was stopped or killed ends with the bits of an uninterrupted
 * one. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"
#include "model/cpu/ops_cpu.h"
#include "model/files/model_files.h"
#include "stages/train/training.h"
#include "tests/unit/stages/children.h"

/* ---- resume ---- */

enum {
    N = 20,
    VOCAB = 40,
    EPOCHS = 24,
    BATCH = 4,
    FIRST = 12,
    FIRST_EPOCHS = 4,
    STEPS = EPOCHS * N / BATCH + FIRST_EPOCHS * FIRST / BATCH
};

typedef struct {
    const char *name; /* of the run: NAME/ (model), NAME.qa (metrics) and NAME.checkpoint */
    double checkpoint_s;
    int epochs, stop_first;
} Run;

static Example *make_examples(void)
{
    Random r;
    random_init(&r, 5, 0);
    Example *ex = memory_array(N, sizeof *ex);
    for (int i = 0; i < N; i++) {
        ex[i] = (Example){.len = 12 + i % 7, .prompt = 4, .advantage = i % 3 ? 1 : -0.5};
        int answer = ex[i].len - ex[i].prompt;
        ex[i].ids = memory_array((size_t)ex[i].len, sizeof *ex[i].ids);
        ex[i].old_logp = memory_array((size_t)answer, sizeof(float));
        ex[i].ref_logp = memory_array((size_t)answer, sizeof(float));
        for (int t = 0; t < ex[i].len; t++) ex[i].ids[t] = (int32_t)random_below(&r, VOCAB);
        for (int k = 0; k < answer; k++) ex[i].old_logp[k] = ex[i].ref_logp[k] = -3.7f;
    }
    return ex;
}

/* Returns 0 when done, 3 when stopped on request, 4 for another error. */
static int train(void *ctx)
{
    const Run *run = ctx;
    const ModelConfig c = {.model_type = "qwen2",
                           .vocab = VOCAB,
                           .hidden = 32,
                           .ff = 64,
                           .layers = 2,
                           .heads = 4,
                           .kv_heads = 2,
                           .head_dim = 8,
                           .max_position = 64,
                           .rope_theta = 10000,
                           .norm_eps = 1e-6f,
                           .tied = 1,
                           .qkv_bias = 1,
                           .eos = {1},
                           .n_eos = 1,
                           .pad = 0};
    char checkpoint[100], metrics[100];
    snprintf(checkpoint, sizeof checkpoint, "%s.checkpoint", run->name);
    snprintf(metrics, sizeof metrics, "%s.qa", run->name);
    if (run->stop_first) raise(SIGTERM);
    ArtifactSpec spec;
    artifact_spec_init(&spec, "manifest", "test_training");
    artifact_spec_config(&spec, "epochs", "%d", run->epochs);
    TrainingOptions o;
    training_defaults(&o);
    loss_preset("dapo", &o.loss);
    o.loss.kl = 0.02;
    o.batch = BATCH, o.epochs = run->epochs, o.seed = 3, o.n_first = FIRST,
    o.first_epochs = FIRST_EPOCHS;
    o.checkpoint = checkpoint;
    o.checkpoint_s = run->checkpoint_s, o.spec = &spec, o.trainer.max_tokens = 64;
    Model *m;
    Error err;
    Example *ex = make_examples();
    if (model_create(&c, ops_cpu(), 9, &m, &err)) return 4;
    int rc = training_run(m, ex, N, &o, metrics, &err);
    int stopped = rc && stop_requested() && !strncmp(err.text, "stopped at step ", 16);
    if (rc && !stopped) fprintf(stderr, "%s\n", err.text);
    if (!rc) rc = file_mkdirs(run->name, &err) || model_save(m, run->name, &err);
    if (!rc) training_forget(&o);
    examples_free(ex, N);
    model_free(m);
    artifact_spec_release(&spec);
    return rc ? stopped ? 3 : 4 : 0;
}

static void same_as_straight(const char *name)
{
    static int trained;
    Run straight = {"straight", 0, EPOCHS, 0};
    if (!trained++) assert_int_equal(child(train, &straight, 0, 0), 0);
    char a[100];
    snprintf(a, sizeof a, "%s/model.safetensors", name);
    assert_equal_files(a, "straight/model.safetensors");
    snprintf(a, sizeof a, "%s.qa", name);
    assert_equal_files(a, "straight.qa");
    snprintf(a, sizeof a, "%s.checkpoint", name);
    assert_false(file_exists(a)); /* removed once the model is saved */
    snprintf(a, sizeof a, "%s.checkpoint.new", name);
    assert_false(file_exists(a));
}

static void metrics_of_every_step(void **state)
{
    (void)state;
    Run straight = {"counted", 0, EPOCHS, 0};
    assert_int_equal(child(train, &straight, 0, 0), 0);
    ArtifactReader *r;
    Error err;
    assert_int_equal(artifact_open("counted.qa", "metrics", &r, &err), 0);
    assert_int_equal(artifact_count(r), 5 * STEPS); /* loss, norm, lr, clipped, kl */
    artifact_close(r);
}

static void stop_keeps_a_checkpoint(void **state)
{
    (void)state;
    Run run = {"stopped", 0, EPOCHS, 1};
    assert_int_equal(WEXITSTATUS(child(train, &run, 0, 0)), 3);
    assert_true(file_exists("stopped.checkpoint/optimizer.safetensors"));
    assert_false(file_exists("stopped.qa"));
    run.stop_first = 0;
    assert_int_equal(child(train, &run, 0, 0), 0);
    same_as_straight("stopped");
}

/* Signals hit a step that differs from run to run; the result is always the same. */
static void interrupted(const char *name, double checkpoint_s, double first, int sig, int expected)
{
    Run run = {name, checkpoint_s, EPOCHS, 0};
    int status = -1, hits = 0, again = 0;
    for (int i = 1; i < 200; i++) {
        status = child(train, &run, first * i * i, sig);
        if (status == 0 && !hits && ++again < 9) { /* the run ended before the signal: try again */
            i = 0;
            continue;
        }
        if (status == 0) break;
        assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), expected);
        hits++;
    }
    assert_int_equal(status, 0);
    assert_true(hits > 0);
    print_message("# %s: interrupted %d times\n", name, hits);
    same_as_straight(name);
}

static void stopped_often(void **state)
{
    (void)state;
    interrupted("often", 0, 0.004, SIGTERM, 3);
}

static void killed_often(void **state)
{
    (void)state;
    interrupted("killed", 1e-9, 0.01, SIGKILL, SIGKILL); /* a checkpoint before every step */
}

static void another_configuration(void **state)
{
    (void)state;
    Run run = {"other", 0, 2, 1};
    assert_int_equal(WEXITSTATUS(child(train, &run, 0, 0)), 3);
    run = (Run){"other", 0, EPOCHS, 0}; /* the checkpoint is of 2 epochs: not used */
    assert_int_equal(child(train, &run, 0, 0), 0);
    same_as_straight("other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metrics_of_every_step), cmocka_unit_test(stop_keeps_a_checkpoint),
        cmocka_unit_test(stopped_often), cmocka_unit_test(killed_often),
        cmocka_unit_test(another_configuration)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("training", tests, NULL, NULL);
}
