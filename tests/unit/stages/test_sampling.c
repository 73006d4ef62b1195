/* Sampling from a small policy: a run that was killed or stopped writes the artifact of an
 * uninterrupted run; ids, log-probabilities and text fit together; a policy that is saved and
 * loaded is the same. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "artifacts/manifest.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/stop.h"
#include "model/cpu/ops_cpu.h"
#include "stages/policy/policy.h"
#include "stages/policy/sampling.h"
#include "stages/train/training.h"
#include "tests/unit/stages/children.h"

enum { PROMPTS = 5, COPIES = 6, BATCH = 4, MAX_NEW = 150, TOTAL = PROMPTS * COPIES, FEWER = 2 };

static int write_dataset(Error *err)
{
    ArtifactSpec spec;
    ArtifactWriter *w;
    artifact_spec_init(&spec, "dataset", "test_sampling");
    if (artifact_create("dataset.qa", &spec, &w, err)) return -1;
    for (int i = 0; i < 20; i++) {
        Record *r = record_new();
        char id[32], answer[300];
        snprintf(id, sizeof id, "d%d", i);
        snprintf(answer, sizeof answer,
                 "## Code Implementation\n```cuda\n//@ launch k<<<%d, 256>>>(x)\n__global__ void "
                 "k() {}\n```",
                 i);
        record_text(r, "id", id);
        record_text(r, "task", "relu");
        record_text(r, "kind", "plain");
        record_text(r, "prompt", "# Task relu\naxes n\n");
        record_text(r, "answer", answer);
        record_float(r, "score", 1);
        if (artifact_write(w, r, err)) return -1;
        record_free(r);
    }
    return artifact_finish(w, err);
}

/* Writes the prompts. Prompt `longer` is longer than the positions of the model, and of `kind`; -1:
 * none, PROMPTS: all. With kind "fewer" every second prompt asks for FEWER answers. */
static int write_prompts(const char *path, int longer, const char *kind, Error *err)
{
    ArtifactSpec spec;
    ArtifactWriter *w;
    artifact_spec_init(&spec, "prompts", "test_sampling");
    if (artifact_create(path, &spec, &w, err)) return -1;
    for (int i = 0; i < PROMPTS; i++) {
        int is_longer = i == longer || longer == PROMPTS; /* all of them */
        Record *r = record_new();
        char id[32], text[2048];
        snprintf(id, sizeof id, "test/relu/%d", i);
        int n = snprintf(text, sizeof text, "# Task relu\naxes n%d <|im_end|>\n",
                         i); /* text, not a special token */
        for (int k = 0; is_longer && k < 300; k++)
            n += snprintf(text + n, sizeof text - (size_t)n, "%d;", k % 7);
        record_text(r, "id", id);
        record_text(r, "task", "relu");
        record_text(r, "split", "train");
        record_text(r, "kind", is_longer ? kind : "plain");
        record_text(r, "text", text);
        if (!strcmp(kind, "fewer") && i % 2) record_int(r, "copies", FEWER);
        if (artifact_write(w, r, err)) return -1;
        record_free(r);
    }
    return artifact_finish(w, err);
}

static int make_policy(void *ctx)
{
    (void)ctx;
    Error err;
    Policy p;
    const SmallModel shape = {400, 96, 256, 3, 4, 2, 256, 3};
    ArtifactSpec spec;
    artifact_spec_init(&spec, "manifest", "test_sampling");
    if (write_dataset(&err) || write_prompts("prompts.qa", -1, "", &err) ||
        small_policy_create("dataset.qa", &shape, ops_cpu(), &p, &err) ||
        policy_save(&p, "model", NULL, &spec, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 4;
    }
    policy_release(&p);
    artifact_spec_release(&spec);
    return 0;
}

typedef struct {
    const char *output;
    int batch;
    const char *prompts; /* NULL: prompts.qa */
} Job;

static int sample(void *ctx)
{
    const Job *job = ctx;
    ArtifactSpec spec;
    Error err;
    artifact_spec_init(&spec, "samples", "test_sampling");
    artifact_spec_config(&spec, "batch", "%d", job->batch);
    const EngineFlags engine = ENGINE_DEFAULTS;
    const SamplingOptions o = {.engine = &engine,
                               .prompts = job->prompts ? job->prompts : "prompts.qa",
                               .output = job->output,
                               .stage = "test",
                               .copies = COPIES,
                               .max_new = MAX_NEW,
                               .batch = job->batch,
                               .temperature = 1,
                               .top_p = 1,
                               .seed = 11};
    int rc = artifact_spec_input(&spec, "model/manifest.qa", &err) ||
             sampling_native("model", &o, &spec, &err);
    if (rc && !stop_requested()) fprintf(stderr, "%s\n", err.text);
    artifact_spec_release(&spec);
    return rc ? stop_requested() ? 3 : 4 : 0;
}

static char *digest_of_artifact(const char *path)
{
    ArtifactReader *r;
    Error err;
    if (artifact_open(path, "samples", &r, &err)) fail_msg("%s", err.text);
    assert_int_equal(artifact_count(r), TOTAL);
    char *digest = memory_strdup(artifact_digest(r));
    artifact_close(r);
    return digest;
}

static void same_as_straight(const char *path)
{
    Job job = {"straight.qa", BATCH};
    if (!file_exists(job.output)) assert_int_equal(child(sample, &job, 0, 0), 0);
    char *a = digest_of_artifact(path), *b = digest_of_artifact(job.output);
    assert_string_equal(a, b);
    free(a);
    free(b);
}

static void interrupted(const char *output, int sig, int expected)
{
    Job job = {output, BATCH};
    int status = -1, hits = 0, resumed = 0, again = 0;
    char journal[64];
    struct stat st;
    snprintf(journal, sizeof journal, "%s.journal", output);
    for (int i = 1; i < 200; i++) {
        status = child(sample, &job, 0.01 * i, sig);
        if (status == 0 && !resumed &&
            ++again < 9) { /* the run ended before the signal: try again */
            unlink(output);
            i = 0;
            continue;
        }
        if (status == 0) break;
        assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), expected);
        hits++;
        resumed += !stat(journal, &st) &&
                   st.st_size > 200; /* it has finished batches, not only the digest */
    }
    assert_int_equal(status, 0);
    assert_true(resumed > 0);
    print_message("# %s: interrupted %d times, %d of them with finished batches\n", output, hits,
                  resumed);
    assert_false(file_exists(journal));
    same_as_straight(output);
}

static void killed(void **state)
{
    (void)state;
    interrupted("killed.qa", SIGKILL, SIGKILL);
}

static void stopped(void **state)
{
    (void)state;
    interrupted("stopped.qa", SIGTERM, 3);
}

/* A contrastive prompt that is too long is left out and the others stay the same. A plain prompt
 * that is too long is an error; so it is when all prompts are. */
static void too_long(void **state)
{
    (void)state;
    Error err;
    Job job = {"shown.qa", BATCH, "longer.qa"};
    ArtifactReader *a, *b;
    View v, w;
    same_as_straight("straight.qa");
    if (write_prompts("longer.qa", 2, "contrastive", &err)) fail_msg("%s", err.text);
    assert_int_equal(child(sample, &job, 0, 0), 0);
    if (artifact_open("shown.qa", "samples", &a, &err) ||
        artifact_open("straight.qa", "samples", &b, &err))
        fail_msg("%s", err.text);
    assert_int_equal(artifact_count(a), TOTAL - COPIES);
    for (long i = 0; i < TOTAL; i++) {
        const void *x, *y;
        size_t nx, ny;
        assert_int_equal(artifact_next(b, &w, &err), 1);
        if (i / COPIES == 2) continue;
        assert_int_equal(artifact_next(a, &v, &err), 1);
        assert_int_equal(artifact_raw(a, i < 2 * COPIES ? i : i - COPIES, &x, &nx) ||
                             artifact_raw(b, i, &y, &ny),
                         0);
        assert_int_equal(nx, ny);
        assert_memory_equal(x, y, nx);
    }
    artifact_close(a);
    artifact_close(b);
    if (write_prompts("longer.qa", 2, "plain", &err)) fail_msg("%s", err.text);
    job.output = "none.qa";
    assert_int_equal(WEXITSTATUS(child(sample, &job, 0, 0)), 4);
    assert_false(file_exists("none.qa"));
    if (write_prompts("longer.qa", PROMPTS, "contrastive", &err)) fail_msg("%s", err.text);
    assert_int_equal(WEXITSTATUS(child(sample, &job, 0, 0)), 4); /* not an empty artifact */
    assert_false(file_exists("none.qa"));
}

/* A prompt that asks for fewer answers gets the first of those that it gets otherwise. */
static void own_copies(void **state)
{
    (void)state;
    Error err;
    Job job = {"fewer.qa", BATCH, "fewer-prompts.qa"};
    ArtifactReader *a, *b;
    View v, w;
    same_as_straight("straight.qa");
    if (write_prompts("fewer-prompts.qa", -1, "fewer", &err)) fail_msg("%s", err.text);
    assert_int_equal(child(sample, &job, 0, 0), 0);
    if (artifact_open("fewer.qa", "samples", &a, &err) ||
        artifact_open("straight.qa", "samples", &b, &err))
        fail_msg("%s", err.text);
    assert_int_equal(artifact_count(a), 3 * COPIES + 2 * FEWER);
    for (long i = 0, k = 0; i < TOTAL; i++) {
        const void *x, *y;
        size_t nx, ny;
        assert_int_equal(artifact_next(b, &w, &err), 1);
        if (i / COPIES % 2 && i % COPIES >= FEWER) continue;
        assert_int_equal(artifact_next(a, &v, &err), 1);
        assert_int_equal(artifact_raw(a, k++, &x, &nx) || artifact_raw(b, i, &y, &ny), 0);
        assert_int_equal(nx, ny);
        assert_memory_equal(x, y, nx);
    }
    artifact_close(a);
    artifact_close(b);
}

static void batch_changes_nothing(void **state)
{
    (void)state;
    Job job = {"wide.qa", 3 * BATCH};
    assert_int_equal(child(sample, &job, 0, 0), 0);
    same_as_straight("wide.qa");
}

/* Runs in a child. The recorded log-probabilities equal the ones of the trainer's forward pass. */
static int check_samples(void *ctx)
{
    (void)ctx;
    Policy p;
    Error err;
    ArtifactReader *r;
    View v;
    if (policy_load("model", ops_cpu(), &p, &err) ||
        artifact_open("straight.qa", "samples", &r, &err))
        return 4;
    long seen = 0, distinct = 0;
    char *before = NULL;
    while (artifact_next(r, &v, &err) == 1) {
        int64_t *ids, *prompt;
        double *lp;
        size_t n, np, nl, code;
        char id[64], *text = view_strdup(&v, "text", &err),
                     *finish = view_strdup(&v, "finish", &err), *name = view_strdup(&v, "id", &err);
        if (!text || !finish || view_ints(&v, "ids", &ids, &n, &err) ||
            view_ints(&v, "prompt_ids", &prompt, &np, &err) ||
            view_floats(&v, "logprobs", &lp, &nl, &err) || n != nl || n > MAX_NEW || !n)
            return 5;
        snprintf(id, sizeof id, "test/relu/%ld/%ld", seen / COPIES, seen % COPIES);
        int stopped = !strcmp(finish, "stop");
        if (strcmp(id, name) || stopped != (ids[n - 1] == p.chat.end) || (!stopped && n != MAX_NEW))
            return 6;
        Example e = {
            .len = (int)(n + np), .prompt = (int)np, .ids = memory_array(n + np, sizeof(int32_t))};
        int ends = 0;
        for (size_t i = 0; i < np; i++) ends += (e.ids[i] = (int32_t)prompt[i]) == p.chat.end;
        for (size_t i = 0; i < n; i++) e.ids[np + i] = (int32_t)ids[i];
        Buffer b;
        buffer_init(&b, 1 << 16);
        if (ends != 1 || tokenizer_decode(p.tokenizer, e.ids + np, n, &b, &err) ||
            strcmp(b.data, text))
            return 7;
        float *again;
        if (training_logprobs(p.model, &e, 1, 1, &again, &err)) return 8;
        for (size_t i = 0; i < n; i++)
            if (fabs(again[i] - lp[i]) > 1e-4) return 9;
        if (view_text(&v, "source", (const char *[]){NULL}, &code, &err)) return 10;
        distinct += !before || strcmp(before, text);
        free(before);
        before = text;
        buffer_release(&b);
        free(again), free(e.ids), free(ids), free(prompt), free(lp), free(finish), free(name);
        seen++;
    }
    free(before);
    artifact_close(r);
    policy_release(&p);
    return seen == TOTAL && distinct > TOTAL / 2 ? 0 : 11;
}

static void records_belong_together(void **state)
{
    (void)state;
    same_as_straight("straight.qa");
    assert_int_equal(child(check_samples, NULL, 0, 0), 0);
}

static int save_again(void *ctx)
{
    (void)ctx;
    Policy p;
    Error err;
    ArtifactSpec spec;
    artifact_spec_init(&spec, "manifest", "test_sampling");
    FILE *extra = fopen("model/generation_config.json", "w");
    int rc = !extra || fputs("{}", extra) < 0 || fclose(extra) ||
             policy_load("model", ops_cpu(), &p, &err) ||
             policy_save(&p, "copy", "model", &spec, &err);
    if (!rc) policy_release(&p);
    artifact_spec_release(&spec);
    return rc;
}

static void policy_round_trip(void **state)
{
    (void)state;
    assert_int_equal(child(save_again, NULL, 0, 0), 0);
    assert_equal_files("model/model.safetensors", "copy/model.safetensors");
    assert_equal_files("model/tokenizer.json", "copy/tokenizer.json");
    assert_equal_files("model/config.json", "copy/config.json");
    assert_equal_files("model/generation_config.json", "copy/generation_config.json");
    assert_equal_files("model/tokenizer_config.json", "copy/tokenizer_config.json");
    ArtifactReader *r;
    Error err;
    assert_int_equal(artifact_open("copy/manifest.qa", "manifest", &r, &err), 0);
    assert_int_equal(artifact_count(r), 5);
    artifact_close(r);
    remove("model/generation_config.json");
}

/* Loads damaged/ and returns the code of the error, or 0. */
static int load_damaged(void *ctx)
{
    (void)ctx;
    Policy p;
    Error err;
    if (policy_load("damaged", ops_cpu(), &p, &err)) return (int)err.code;
    policy_release(&p);
    return 0;
}

/* Damage that leaves a model whole to look at is found by its manifest, at the opening. */
static void damage_is_named(void **state)
{
    (void)state;
    Error err;
    ArtifactSpec spec;
    artifact_spec_init(&spec, "manifest", "test_sampling");
    assert_int_equal(manifest_carry_over("model", "damaged", &spec, &err), 0);
    assert_int_equal(child(load_damaged, NULL, 0, 0), 0);
    Buffer b;
    buffer_init(&b, 1 << 24);
    assert_int_equal(file_read("damaged/model.safetensors", b.max, &b, &err), 0);
    b.data[b.len - 1] ^= (char)0x80; /* the sign of the last number */
    assert_int_equal(file_write_atomic("damaged/model.safetensors", b.data, b.len, &err), 0);
    assert_int_equal(child(load_damaged, NULL, 0, 0) >> 8, ERROR_CORRUPT);
    assert_int_equal(manifest_carry_over("damaged", "other", &spec, &err), -1);
    assert_int_equal(err.code, ERROR_CORRUPT);
    b.data[b.len - 1] ^= (char)0x80;
    assert_int_equal(file_write_atomic("damaged/model.safetensors", b.data, b.len, &err), 0);
    remove("damaged/config.json");
    assert_int_equal(child(load_damaged, NULL, 0, 0) >> 8, ERROR_CORRUPT);
    buffer_release(&b);
    artifact_spec_release(&spec);
}

static int set_up(void **state)
{
    (void)state;
    return child(make_policy, NULL, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed),
                                       cmocka_unit_test(stopped),
                                       cmocka_unit_test(own_copies),
                                       cmocka_unit_test(batch_changes_nothing),
                                       cmocka_unit_test(too_long),
                                       cmocka_unit_test(records_belong_together),
                                       cmocka_unit_test(policy_round_trip),
                                       cmocka_unit_test(damage_is_named)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("sampling", tests, set_up, NULL);
}
