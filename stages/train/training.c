/* Steps are numbered over all epochs, so the order, the learning rate and a checkpoint follow from
 * the number of the step alone. */
#include "stages/train/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "artifacts/artifact.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"
#include "model/core/model.h"
#include "model/core/ranks.h"
#include "model/files/model_files.h"
#include "model/memory_plan.h"
#include "model/trainer.h"

/* ---- metrics by step, and checkpoints ---- */

typedef struct {
    long step;
    char name[24];
    double value;
} Metric;

typedef struct {
    Metric *items;
    long n, cap;
} MetricLog;

typedef struct {
    const char *dir;
    const ArtifactSpec *spec;
} Checkpoint;

/* A training between two steps. */
typedef struct {
    Model *m;
    Trainer *t;
    MetricLog log;
    long step; /* the next one */
} TrainingState;

static char step_key[] = "~step"; /* sorts behind every flag */

static void metric_add(MetricLog *l, long step, const char *name, double value)
{
    memory_room(l->items, l->n, l->cap, 256);
    Metric *m = &l->items[l->n++];
    m->step = step;
    m->value = value;
    snprintf(m->name, sizeof m->name, "%s", name);
}

/* NaN without a value */
static double metric_last(const MetricLog *l, const char *name)
{
    for (long i = l->n - 1; i >= 0; i--)
        if (!strcmp(l->items[i].name, name)) return l->items[i].value;
    return NAN;
}

/* Writes a metrics artifact with the producer, configuration and inputs of spec. */
static int metric_write(const MetricLog *l, const char *path, const ArtifactSpec *spec, Error *err)
{
    ArtifactSpec s = *spec;
    s.kind = "metrics";
    ArtifactWriter *w;
    if (artifact_create(path, &s, &w, err)) return -1;
    int rc = 0;
    for (long i = 0; !rc && i < l->n; i++) {
        Record *r = record_new();
        record_int(r, "step", l->items[i].step);
        record_text(r, "name", l->items[i].name);
        record_float(r, "value", l->items[i].value);
        rc = artifact_put(w, r, err);
    }
    return artifact_end(w, rc, err);
}

static void metric_release(MetricLog *l)
{
    free(l->items);
    *l = (MetricLog){0};
}

/* The first rank writes the model before, and renames after, the optimizer's state, which all ranks
 * write together. */
static int begin_save(const char *fresh, const Model *m, Error *err)
{
    return -(file_remove_tree(fresh, err) || file_mkdirs(fresh, err) || model_save(m, fresh, err));
}

static int end_save(const Checkpoint *c, const char *fresh, const TrainingState *state, Error *err)
{
    char old[4096], path[4200], number[24];
    ArtifactSpec s = *c->spec;
    snprintf(old, sizeof old, "%s.old", c->dir);
    if (s.n_config == ARTIFACT_MAX_CONFIG)
        return error_set(err, ERROR_LIMIT, "no room for the step in the checkpoint's header");
    snprintf(number, sizeof number, "%ld", state->step);
    s.config[s.n_config].key = step_key;
    s.config[s.n_config++].value = number;
    snprintf(path, sizeof path, "%s/metrics.qa", fresh);
    if (metric_write(&state->log, path, &s, err) || file_remove_tree(old, err)) return -1;
    if (file_exists(c->dir) && rename(c->dir, old))
        return error_errno(err, "cannot rename %s", c->dir);
    if (rename(fresh, c->dir)) return error_errno(err, "cannot rename %s", fresh);
    return file_sync_dir(c->dir, err) ? -1 : file_remove_tree(old, err);
}

/* Saves the state. With ranks (model/core/ranks.h) all of them call it, and the first writes. */
static int checkpoint_save(const Checkpoint *c, const TrainingState *s, Error *err)
{
    char fresh[4096], path[4200];
    snprintf(fresh, sizeof fresh, "%s.new", c->dir);
    snprintf(path, sizeof path, "%s/optimizer.safetensors", fresh);
    int first = !ranks_rank();
    if ((first && begin_save(fresh, s->m, err)) || trainer_save(s->t, path, err)) return -1;
    return first ? end_save(c, fresh, s, err) : 0;
}

static int read_metrics(const char *path, const Checkpoint *c, TrainingState *state, Error *err)
{
    ArtifactReader *r;
    if (artifact_open(path, "metrics", &r, err)) return -1;
    View config, v;
    char *text = view_map(artifact_header(r), "config", &config, err)
                     ? NULL
                     : view_strdup(&config, step_key, err);
    ArtifactSpec s = *c->spec;
    int rc = -1, more = 1;
    if (text && s.n_config < ARTIFACT_MAX_CONFIG) {
        s.kind = "metrics";
        s.config[s.n_config].key = step_key;
        s.config[s.n_config++].value = text;
        rc = artifact_matches(r, &s)
                 ? 0
                 : error_set(err, ERROR_INVALID, "%s is of another configuration", path);
    }
    while (!rc && (more = artifact_next(r, &v, err)) == 1) {
        int64_t at;
        double value;
        char *name = view_strdup(&v, "name", err);
        rc = -(!name || view_int(&v, "step", &at, err) || view_float(&v, "value", &value, err));
        if (!rc) metric_add(&state->log, at, name, value);
        free(name);
    }
    if (!rc && more < 0) rc = -1;
    if (!rc) state->step = strtol(text, NULL, 10);
    free(text);
    artifact_close(r);
    return rc;
}

/* Loads the checkpoint. Without one the step is 0; so it is with one of another configuration, which
 * is logged and stays there. A damaged checkpoint is moved to DIR.damaged, and that is an error. */
static int checkpoint_load(const Checkpoint *c, TrainingState *s, Error *err)
{
    char dir[4096], path[4200];
    Error why;
    snprintf(dir, sizeof dir, "%s", c->dir);
    s->step = 0;
    if (!file_exists(dir))
        snprintf(dir, sizeof dir, "%s.old", c->dir); /* killed between two renames */
    if (!file_exists(dir)) return 0;
    snprintf(path, sizeof path, "%s/metrics.qa", dir);
    if (read_metrics(path, c, s, &why)) {
        log_info("starting over: %s", why.text);
        metric_release(&s->log);
        s->step = 0;
        return 0;
    }
    snprintf(path, sizeof path, "%s/optimizer.safetensors", dir);
    if (!model_restore(s->m, dir, err) && !trainer_load(s->t, path, err)) return 0;
    snprintf(path, sizeof path, "%s.damaged", c->dir);
    if (!ranks_rank() && !file_remove_tree(path, NULL) && !rename(dir, path))
        error_prefix(err, "%s is put aside; the same command starts over", path);
    return -1;
}

/* Removes the checkpoint, and what a killed save has left beside it. */
static void checkpoint_remove(const char *dir)
{
    static const char *const ends[] = {"", ".new", ".old"};
    char path[4200];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", dir, ends[i]);
        file_remove_tree(path, NULL);
    }
}

void training_defaults(TrainingOptions *o)
{
    *o = (TrainingOptions){.lr = 1e-3,
                           .warmup = 0.05,
                           .final_lr = 0.1,
                           .clip_norm = 1.0,
                           .beta2 = 0.95,
                           .batch = 32,
                           .epochs = 1,
                           .reference_kl = NAN,
                           .trainer.max_tokens = 8192};
    loss_supervised(&o->loss);
}

/* One minibatch: the input of the weight callback, and its counts. */
typedef struct {
    const Example *const *ex;
    const Loss *loss;
    LossBatch size;
    LossCounts counts;
} Batch;

static void token_weights(void *ctx, int sequence, const float *logp, float *weight)
{
    Batch *b = ctx;
    const Example *e = b->ex[sequence];
    const LossAnswer a = {e->len - e->prompt, e->advantage, logp ? logp + e->prompt : NULL,
                          e->old_logp,        e->ref_logp,  e->sampler_logp};
    for (int t = 1; t < e->prompt; t++) weight[t] = 0;
    loss_weights(b->loss, &b->size, &a, weight + e->prompt, &b->counts);
}

/* The order of the examples in an epoch: a permutation that depends on seed and epoch. */
static void shuffle(long *order, long n, uint64_t seed, long epoch)
{
    Random r;
    random_init(&r, seed, 0x7368756666ull + (uint64_t)epoch);
    for (long i = 0; i < n; i++) order[i] = i;
    for (long i = n - 1; i > 0; i--) {
        long j = (long)random_below(&r, (uint64_t)i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

static double learning_rate(const TrainingOptions *o, long step, long steps)
{
    double warm = fmax(1, floor(o->warmup * (double)steps));
    if ((double)step < warm) return o->lr * ((double)step + 1) / warm;
    double x = steps > 1 ? ((double)step - warm) / fmax(1, (double)steps - warm) : 0;
    return o->lr * (o->final_lr + (1 - o->final_lr) * 0.5 * (1 + cos(3.141592653589793 * x)));
}

typedef struct {
    const Example *ex;
    long n, steps, epoch;
    long first_steps, first_per_epoch; /* steps over the first examples; of them in an epoch */
    long per_epoch;                    /* steps in an epoch over all examples */
    long *order;
    const Example **members;
    Sequence *seqs;
} Loop;

static int one_step(TrainingState *s, Loop *l, const TrainingOptions *o, Error *err)
{
    long step = s->step;
    MetricLog *log = &s->log;
    int early = step < l->first_steps;
    long at = early ? step : step - l->first_steps,
         per_epoch = early ? l->first_per_epoch : l->per_epoch;
    long n = early ? o->n_first : l->n, epoch = at / per_epoch + (early ? 0 : o->first_epochs),
         first = at % per_epoch * o->batch;
    if (epoch != l->epoch) shuffle(l->order, n, o->seed, epoch);
    l->epoch = epoch;
    int k = 0;
    Batch b = {.ex = l->members, .loss = &o->loss};
    for (long i = first; i < n && k < o->batch; i++, k++) {
        const Example *e = &l->ex[l->order[i]];
        l->members[k] = e;
        l->seqs[k] = (Sequence){e->ids, e->len};
        b.size.tokens += e->len - e->prompt;
        b.size.sequences++;
    }
    double loss, norm, lr = learning_rate(o, step, l->steps);
    AdamW opt = {.lr = lr,
                 .beta1 = 0.9,
                 .beta2 = o->beta2,
                 .eps = 1e-8,
                 .weight_decay = o->weight_decay,
                 .clip = o->clip_norm};
    double counts[3];
    int rc = trainer_accumulate(s->t, l->seqs, k, token_weights, &b, &loss, err) ||
             trainer_step(s->t, &opt, &norm, err);
    counts[0] = b.counts.clipped, counts[1] = b.counts.kl, counts[2] = b.counts.correction;
    if (rc || ranks_host_sum(counts, 3, err)) return error_prefix(err, "training step %ld", step);
    metric_add(log, step, "loss", loss);
    metric_add(log, step, "norm", norm);
    metric_add(log, step, "lr", lr);
    if (l->ex[0].old_logp) metric_add(log, step, "clipped", counts[0] / b.size.tokens);
    if (l->ex[0].ref_logp) metric_add(log, step, "kl", counts[1] / b.size.tokens);
    if (l->ex[0].sampler_logp) metric_add(log, step, "correction", counts[2] / b.size.tokens);
    return 0;
}

/* Whether a pass over the first examples or over all of them ends after `done` steps. */
static int pass_ends(const Loop *l, long done)
{
    if (done <= l->first_steps) return done % l->first_per_epoch == 0;
    return (done - l->first_steps) % l->per_epoch == 0;
}

/* Notes the mean of -log p over the tokens of the answers of o->val, as a metric of step. */
static int validate(TrainingState *s, const TrainingOptions *o, Error *err)
{
    long step = s->step;
    float **lp = memory_array((size_t)o->n_val, sizeof *lp);
    double sum = 0;
    long tokens = 0;
    int rc = training_logprobs(s->m, o->val, o->n_val, o->batch, lp, err);
    for (long i = 0; i < o->n_val; i++) {
        for (int k = 0; !rc && k < o->val[i].len - o->val[i].prompt; k++, tokens++)
            sum -= (double)lp[i][k];
        free(lp[i]);
    }
    free(lp);
    if (rc) return error_prefix(err, "validation after step %ld", step);
    metric_add(&s->log, step, "validation", sum / (double)tokens);
    log_info("step %ld: validation loss %.4f", step + 1, sum / (double)tokens);
    return 0;
}

static int loop_run(TrainingState *s, Loop *l, const TrainingOptions *o, Error *err)
{
    Checkpoint c = {.dir = o->checkpoint, .spec = o->spec};
    if (o->checkpoint && checkpoint_load(&c, s, err)) return -1;
    if (s->step) log_info("continuing at step %ld of %ld", s->step, l->steps);
    Progress p;
    progress_start(&p, "train", "steps", s->step, l->steps);
    double saved = clock_seconds();
    for (; s->step < l->steps; s->step++) {
        int now[2] = {stop_requested(),
                      o->checkpoint_s > 0 && clock_seconds() - saved > o->checkpoint_s};
        if (ranks_host_share(now, sizeof now, err))
            return -1; /* all ranks stop or save when the first one does */
        if (o->checkpoint && (now[0] || now[1])) {
            if (checkpoint_save(&c, s, err)) return -1;
            saved = clock_seconds();
        }
        if (now[0]) {
            if (ranks_finish(err)) return -1; /* the other ranks end here */
            return error_set(err, ERROR_STOPPED,
                             "stopped at step %ld of %ld; the same command continues", s->step,
                             l->steps);
        }
        if (one_step(s, l, o, err)) return -1;
        if (o->n_val && pass_ends(l, s->step + 1) && validate(s, o, err)) return -1;
        progress_set(&p, s->step + 1);
    }
    progress_end(&p);
    return 0;
}

int training_run(Model *m, const Example *ex, long n, const TrainingOptions *o,
                 const char *metrics_path, Error *err)
{
    if (n == 0) return error_set(err, ERROR_INVALID, "no examples to train on");
    TrainingState state = {.m = m};
    TrainerOptions to = o->trainer;
    to.fixed_weights = !loss_needs_logp(&o->loss);
    if (trainer_create(m, &to, &state.t, err)) return -1;
    const MemoryPlan *plan = trainer_plan(state.t);
    log_debug("training takes %.2f GiB: micro-batches of %d tokens, %s",
              (double)plan->total / (1 << 30), plan->max_tokens,
              plan->recompute ? "activations made again" : "all activations kept");
    Loop l = {.ex = ex, .n = n, .epoch = -1};
    l.per_epoch = (n + o->batch - 1) / o->batch;
    l.first_per_epoch = (o->n_first + o->batch - 1) / o->batch;
    l.first_steps = l.first_per_epoch * o->first_epochs;
    l.steps = l.first_steps + l.per_epoch * o->epochs;
    l.order = memory_array((size_t)n, sizeof *l.order);
    l.members = memory_array((size_t)o->batch, sizeof *l.members);
    l.seqs = memory_array((size_t)o->batch, sizeof *l.seqs);
    MetricLog *log = &state.log;
    int rc = loop_run(&state, &l, o, err);
    if (!isnan(o->reference_kl)) metric_add(log, 0, "reference.kl", o->reference_kl);
    if (!rc && metrics_path && !ranks_rank()) rc = metric_write(log, metrics_path, o->spec, err);
    if (!rc && log->n >= 3)
        log_info("%ld steps, last loss %.4f", l.steps, metric_last(log, "loss"));
    metric_release(log);
    free(l.order);
    free(l.members);
    free(l.seqs);
    trainer_free(state.t);
    return rc;
}

void training_forget(const TrainingOptions *o)
{
    if (o->checkpoint && !ranks_rank()) checkpoint_remove(o->checkpoint);
}

/* Computes the log-probabilities of n examples into out, n arrays that are allocated. */
static int logprobs_of(Model *m, const Example *ex, int n, float *const *out, Error *err)
{
    Sequence *seqs = memory_array((size_t)n, sizeof *seqs);
    float **lp = memory_array((size_t)n, sizeof *lp);
    for (int i = 0; i < n; i++) {
        seqs[i] = (Sequence){ex[i].ids, ex[i].len};
        lp[i] = memory_array((size_t)ex[i].len, sizeof **lp);
    }
    int rc = model_logprobs(m, seqs, n, lp, err);
    for (int i = 0; i < n; i++) {
        if (!rc)
            memcpy(out[i], lp[i] + ex[i].prompt, (size_t)(ex[i].len - ex[i].prompt) * sizeof **out);
        free(lp[i]);
    }
    free(seqs);
    free(lp);
    return rc;
}

/* Gives all ranks the log-probabilities. One rank has computed these; they are 0 in the others. */
static int share_logprobs(const Example *ex, int n, float *const *out, Error *err)
{
    size_t all = 0, at = 0;
    for (int i = 0; i < n; i++) all += (size_t)(ex[i].len - ex[i].prompt);
    double *sum = memory_array(all, sizeof *sum);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < ex[i].len - ex[i].prompt; k++) sum[at++] = out[i][k];
    int rc = ranks_host_sum(sum, (int)all, err);
    at = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < ex[i].len - ex[i].prompt; k++) out[i][k] = (float)sum[at++];
    free(sum);
    return rc;
}

int training_logprobs(Model *m, const Example *ex, long n, int batch, float **out, Error *err)
{
    int rc = 0;
    for (long i = 0; i < n; i++)
        out[i] = memory_array((size_t)(ex[i].len - ex[i].prompt), sizeof **out);
    for (long first = ranks_rank() * (long)batch; !rc && first < n;
         first += ranks_size() * (long)batch)
        rc = logprobs_of(m, ex + first, (int)(n - first < batch ? n - first : batch), out + first,
                         err);
    for (long first = 0; !rc && ranks_size() > 1 && first < n; first += batch)
        rc = share_logprobs(ex + first, (int)(n - first < batch ? n - first : batch), out + first,
                            err);
    return rc;
}

int training_dropped(long dropped, long all, int max_len, const char *setting, Error *err)
{
    if (dropped && dropped == all)
        return error_set(
            err, ERROR_INVALID,
            "all %ld examples are longer than %d tokens: there is nothing to learn from; "
            "a larger --context in %s takes them in",
            all, max_len, setting);
    if (dropped)
        log_warn(
            "%ld of %ld examples are longer than %d tokens and are left out; a larger --context "
            "in %s takes them in",
            dropped, all, max_len, setting);
    return 0;
}

void example_release(Example *e)
{
    free(e->ids);
    free(e->old_logp);
    free(e->ref_logp);
    free(e->sampler_logp);
    free(e->user);
    free(e->assistant);
    *e = (Example){0};
}

void examples_free(Example *ex, long n)
{
    for (long i = 0; i < n; i++) example_release(&ex[i]);
    free(ex);
}
