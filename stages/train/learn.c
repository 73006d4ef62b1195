/* The output is emptied before a model is stored in it, so it is checked to be a model's folder
 * first. */
#include "stages/train/learn.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "artifacts/manifest.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"
#include "stages/data/history.h"
#include "stages/train/outside_trainer.h"

enum { LOGPROB_BATCH = 32, KL_EXAMPLES = 64 };

/* Encodes the prompt, and the answer unless the sample has its ids. */
static int example_from_text(const Policy *p, const Sample *s, Example *out, Error *err)
{
    TokenIds ids = {0};
    int rc = chat_encode_prompt(&p->chat, s->prompt, strlen(s->prompt), &ids, err);
    out->prompt = (int)ids.n;
    if (!rc && s->ids) {
        if (s->n_ids)
            memcpy(token_ids_room(&ids, (size_t)s->n_ids), s->ids,
                   (size_t)s->n_ids * sizeof *s->ids);
        ids.n += (size_t)s->n_ids;
    } else if (!rc) {
        rc = chat_encode_answer(&p->chat, s->text, strlen(s->text), &ids, err);
        ids.n -= !rc && s->truncated; /* a truncated answer has no end token */
    }
    out->ids = ids.ids;
    out->len = (int)ids.n;
    return rc ? error_prefix(err, "sample %s", s->id) : 0;
}

static void example_from_ids(const Sample *s, Example *out)
{
    out->len = s->n_prompt + s->n_ids;
    out->prompt = s->n_prompt;
    out->ids = memory_array((size_t)out->len, sizeof *out->ids);
    memcpy(out->ids, s->prompt_ids, (size_t)s->n_prompt * sizeof *out->ids);
    memcpy(out->ids + s->n_prompt, s->ids, (size_t)s->n_ids * sizeof *out->ids);
}

int learn_example(const Policy *p, const Sample *s, int with_old, Example *out, Error *err)
{
    *out = (Example){0};
    if (s->ids && s->prompt_ids)
        example_from_ids(s, out);
    else if (!p)
        return error_set(
            err, ERROR_INVALID,
            "sample %s holds no token ids, and there is no tokenizer to encode its text", s->id);
    else if (example_from_text(p, s, out, err))
        return -1;
    if (with_old && s->ids && s->logprobs) {
        out->old_logp = memory_array((size_t)s->n_ids, sizeof *out->old_logp);
        memcpy(out->old_logp, s->logprobs, (size_t)s->n_ids * sizeof *out->old_logp);
    }
    if (s->prompt) out->user = memory_strdup(s->prompt);
    if (s->text) out->assistant = memory_strdup(s->text);
    return 0;
}

int learn_tokenizer(const SampleSet *s, const char *base, Policy *tokenizer, const Policy **out,
                    Error *err)
{
    long without = samples_without_ids(s);
    *out = without ? tokenizer : NULL;
    if (!without) return 0;
    log_info("%ld of %ld samples came without token ids: their texts are encoded", without, s->n);
    return tokenizer->tokenizer ? 0 : policy_tokenizer(base, tokenizer, err);
}

static int reference_logprobs(const LearnOptions *o, Example *ex, long n, Error *err)
{
    Policy ref;
    if (engine_policy(o->engine, o->reference, &ref, err)) return -1;
    float **lp = memory_array((size_t)n, sizeof *lp);
    int rc = training_logprobs(ref.model, ex, n, LOGPROB_BATCH, lp, err);
    for (long i = 0; i < n; i++) ex[i].ref_logp = lp[i];
    free(lp);
    policy_release(&ref);
    return rc;
}

/* Notes how far what sampled the answers is from o->measured: the mean of log p - log q over the
 * tokens of at most KL_EXAMPLES answers, spread evenly. NAN when none has its log-probabilities. */
static int measure_kl(const LearnOptions *o, const Example *ex, long n, double *kl, Error *err)
{
    Example some[KL_EXAMPLES];
    float *lp[KL_EXAMPLES] = {NULL};
    long k = 0, with = 0, tokens = 0;
    double sum = 0;
    int rc = 0;
    for (long i = 0; i < n; i++) with += ex[i].old_logp != NULL;
    for (long i = 0, at = 0; i < n; i++)
        if (ex[i].old_logp && at++ * KL_EXAMPLES / with >= k && k < KL_EXAMPLES) some[k++] = ex[i];
    *kl = NAN;
    if (!k) return 0;
    Policy q;
    if (engine_policy(o->engine, o->measured, &q, err)) return -1;
    rc = training_logprobs(q.model, some, k, LOGPROB_BATCH, lp, err);
    for (long i = 0; i < k; i++) {
        for (int j = 0; !rc && j < some[i].len - some[i].prompt; j++, tokens++)
            sum += (double)some[i].old_logp[j] - (double)lp[i][j];
        free(lp[i]);
    }
    if (!rc && tokens) *kl = sum / (double)tokens;
    policy_release(&q);
    return rc;
}

/* Computes the log-probabilities under the weights before the update for the examples without
 * them. */
static int old_logprobs(Model *m, const Loss *loss, Example *ex, long n, Error *err)
{
    if (loss->ratio == LOSS_NO_RATIO) return 0;
    long uncorrected = 0;
    for (long i = 0; i < n && loss->correction != LOSS_CORRECT_NONE; i++) {
        uncorrected += !ex[i].old_logp;
        ex[i].sampler_logp = ex[i].old_logp;
        ex[i].old_logp = NULL;
    }
    if (uncorrected)
        log_warn("%ld of %ld answers came without log-probabilities: they are not corrected",
                 uncorrected, n);
    Example *lacking = memory_array((size_t)n, sizeof *lacking);
    long *at = memory_array((size_t)n, sizeof *at), k = 0;
    for (long i = 0; i < n; i++)
        if (!ex[i].old_logp) at[k] = i, lacking[k++] = ex[i];
    float **lp = memory_array((size_t)k, sizeof *lp);
    if (k) log_info("log-probabilities of %ld answers before the update", k);
    int rc = k ? training_logprobs(m, lacking, k, LOGPROB_BATCH, lp, err) : 0;
    for (long i = 0; i < k; i++) ex[at[i]].old_logp = lp[i];
    free(lp);
    free(at);
    free(lacking);
    return rc;
}

/* Saves the model in an empty folder: an adapter or a template of an earlier model would be taken
 * for a part of it. */
static int save_alone(const LearnOptions *o, const Policy *p, const char *metrics, int trained,
                      Error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/metrics.qa", o->output);
    if (manifest_remove(o->output, err) || file_remove_tree(o->output, err) ||
        file_mkdirs(o->output, err))
        return -1;
    if (trained && rename(metrics, path))
        return error_errno(err, "cannot rename %s to %s", metrics, path);
    return policy_save(p, o->output, o->base, o->spec, err);
}

static int train_here(const LearnOptions *o, Example *ex, long n, double kl, Error *err)
{
    char metrics[4096], checkpoint[4096];
    snprintf(metrics, sizeof metrics, "%s.metrics.qa", o->output);
    snprintf(checkpoint, sizeof checkpoint, "%s.checkpoint", o->output);
    TrainingOptions t = o->training;
    t.checkpoint = checkpoint;
    t.spec = o->spec;
    t.reference_kl = kl;
    t.trainer = engine_training(o->engine, !loss_needs_logp(&t.loss));
    Policy p = {0};
    if (o->start)
        p = *o->start;
    else if (engine_policy(o->engine, o->base, &p, err))
        return -1;
    if (n == 0) log_warn("nothing to learn from in this round: the weights stay as they are");
    int rc = -(engine_adapter(o->engine, t.seed, p.model, err) || file_mkdirs(o->output, err) ||
               (n && (old_logprobs(p.model, &t.loss, ex, n, err) ||
                      training_run(p.model, ex, n, &t, metrics, err))) ||
               (!ranks_rank() && save_alone(o, &p, metrics, n > 0, err)));
    if (!rc) training_forget(&t);
    policy_release(&p);
    return rc;
}

static int train_outside(const LearnOptions *o, Example *ex, long n, Error *err)
{
    const OutsideTrainer out = {.command = o->engine->trainer,
                                .limit_s = o->engine->trainer_hours * 3600,
                                .stage = o->stage,
                                .base = o->base,
                                .output = o->output,
                                .reference = o->reference,
                                .spec = o->spec,
                                .training = &o->training,
                                .lora = engine_lora(o->engine, o->training.seed)};
    if (n) return outside_train(&out, ex, n, err);
    log_warn(
        "nothing to learn from in this round: the trainer is not called, the model stays as it is");
    return manifest_carry_over(o->base, o->output, o->spec, err);
}

int learn_inputs(const char *samples, const char *verdicts, const char *base, const char *history,
                 ArtifactSpec *out, Error *err)
{
    return -(config_inputs(out, (const char *[]){samples, verdicts}, 2, err) ||
             manifest_input(base, out, err) || history_inputs(history, out, err));
}

static int is_same_folder(const char *a, const char *b)
{
    struct stat x, y;
    return a && !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int is_model(const char *dir)
{
    static const char *const names[] = {"manifest.qa", "manifest.qa.damaged", "config.json",
                                        "adapter_config.json"};
    int found = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) {
        char *path = memory_printf("%s/%s", dir, names[i]);
        found = file_exists(path);
        free(path);
    }
    return found;
}

/* Refuses an output folder that is the base's or the reference's, or that has files of another kind
 * than a model's: the output is emptied later. */
static int check_output(const LearnOptions *o, Error *err)
{
    if (is_same_folder(o->base, o->output) || is_same_folder(o->reference, o->output))
        return error_set(err, ERROR_INVALID,
                         "%s is the folder of the model that is read; the new one needs another",
                         o->output);
    DIR *d = is_model(o->output) ? NULL : opendir(o->output);
    int rc = 0;
    for (struct dirent *e; d && !rc && (e = readdir(d));) {
        static const char *const endings[] = {".json",  ".qa",  ".safetensors",
                                              ".jinja", ".txt", ".model"};
        const char *dot = strrchr(e->d_name, '.');
        int known = e->d_name[0] == '.' || strstr(e->d_name, ".tmp.");
        for (size_t i = 0; i < sizeof endings / sizeof *endings && dot; i++)
            known |= !strcmp(dot, endings[i]);
        if (!known)
            rc = error_set(
                err, ERROR_INVALID,
                "%s holds %s, which is no file of a model: expected an empty folder or a model's",
                o->output, e->d_name);
    }
    if (d) closedir(d);
    return rc;
}

/* Begins a round, before the examples are made. Returns 0 when output already holds this work, 1
 * when it must be done (one process per GPU then runs), -1 on an error. */
static int begin(const LearnOptions *o, Error *err)
{
    if (manifest_same(o->output, o->spec)) return 0;
    if (check_output(o, err)) return -1;
    return !o->engine->trainer && engine_start(o->engine, err) ? -1 : 1;
}

/* Trains base (or start) on the examples and writes output. Without examples the weights are
 * written unchanged, and a warning says so. When the loss has a ratio, missing log-probabilities
 * before the update are computed. When the loss has a correction, all of them are computed, and the
 * ones as sampled become sampler_logp. With several GPUs every process calls it, and only the first
 * returns. */
static int train(const LearnOptions *o, Example *ex, long n, Error *err)
{
    if (o->engine->trainer) return train_outside(o, ex, n, err);
    if (o->reference && n && reference_logprobs(o, ex, n, err)) return -1;
    double kl = NAN;
    if (o->measured && n && measure_kl(o, ex, n, &kl, err)) return -1;
    return train_here(o, ex, n, kl, err) ? -1 : engine_finish(err);
}

/* ---- the program: --plan, or inputs, nothing to do, examples, training ---- */

static int run(const LearnProgram *p, LearnOptions *l, ArtifactSpec *spec, Error *err)
{
    Example *ex = NULL;
    long n = 0;
    if (p->engine->plan)
        return engine_plan(p->engine, l->base, p->small, !loss_needs_logp(&l->training.loss), err);
    if (p->inputs(p->stage, spec, err)) return -1;
    int rc = begin(l, err);
    if (rc != 1) return rc;
    rc = -(p->examples(p->stage, l, &ex, &n, err) || train(l, ex, n, err));
    examples_free(ex, n);
    return rc;
}

int learn_program(const LearnProgram *p, LearnOptions *l)
{
    Error err;
    ArtifactSpec spec;
    engine_check(p->engine, p->program, l->base);
    engine_required(p->engine, p->program, p->required);
    flags_checked();
    stop_install();
    config_spec(&spec, "manifest", p->program, p->defaults);
    engine_config(p->engine, &spec);
    l->spec = &spec;
    l->engine = p->engine;
    if (run(p, l, &spec, &err)) log_die(&err);
    artifact_spec_release(&spec);
    return log_close(EXIT_STATUS_OK);
}
