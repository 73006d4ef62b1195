#include "stages/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/stop.h"
#include "stages/checkpoint.h"

void training_defaults(TrainingOptions *o)
{
    *o = (TrainingOptions){.lr = 1e-3, .warmup = 0.05, .final_lr = 0.1, .clip_norm = 1.0, .beta2 = 0.95, .eps_low = 0.2,
                           .eps_high = 0.28, .batch = 32, .epochs = 1, .max_tokens = 8192};
}

/* One minibatch: what the weight callback needs, and what it counts. */
typedef struct {
    const Example *const *ex;
    const TrainingOptions *o;
    double z;                      /* answer tokens of the minibatch */
    TokenCounts counts;
} Batch;

void training_weights(const Example *e, const TrainingOptions *o, double z, const float *logp, float *weight,
                      TokenCounts *counts)
{
    for (int t = 1; t < e->len; t++) {
        int k = t - e->prompt;
        weight[t] = 0;
        if (k < 0) continue;
        double w = -e->advantage;
        if (e->old_logp) {
            double d = (double)logp[t] - (double)e->old_logp[k];
            double rho = exp(fmax(-20.0, fmin(20.0, d)));
            int outside = e->advantage > 0 ? rho > 1 + o->eps_high : rho < 1 - o->eps_low;
            counts->clipped += outside;
            w = outside ? 0 : -e->advantage * rho;
        }
        if (e->ref_logp) {
            double d = fmax(-20.0, fmin(20.0, (double)e->ref_logp[k] - (double)logp[t]));
            counts->kl += exp(d) - d - 1;
            w += o->kl * (1 - exp(d));
        }
        weight[t] = (float)(w / z);
    }
}

static void token_weights(void *ctx, int sequence, const float *logp, float *weight)
{
    Batch *b = ctx;
    training_weights(b->ex[sequence], b->o, b->z, logp, weight, &b->counts);
}

/* Order of the examples: each epoch a permutation of its own. */
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
    long first_steps, first_per_epoch, per_epoch; /* of the epochs over the first examples, and over all */
    long *order;
    const Example **members;
    Sequence *seqs;
} Loop;

static int one_step(Trainer *t, Loop *l, const TrainingOptions *o, long step, MetricLog *log, Error *err)
{
    int early = step < l->first_steps;
    long at = early ? step : step - l->first_steps, per_epoch = early ? l->first_per_epoch : l->per_epoch;
    long n = early ? o->n_first : l->n, epoch = at / per_epoch + (early ? 0 : o->first_epochs), first = at % per_epoch * o->batch;
    if (epoch != l->epoch) shuffle(l->order, n, o->seed, epoch);
    l->epoch = epoch;
    int k = 0;
    Batch b = {.ex = l->members, .o = o};
    for (long i = first; i < n && k < o->batch; i++, k++) {
        const Example *e = &l->ex[l->order[i]];
        l->members[k] = e;
        l->seqs[k] = (Sequence){e->ids, e->len};
        b.z += e->len - e->prompt;
    }
    double loss, norm, lr = learning_rate(o, step, l->steps);
    AdamW opt = {.lr = lr, .beta1 = 0.9, .beta2 = o->beta2, .eps = 1e-8, .weight_decay = o->weight_decay, .clip = o->clip_norm};
    if (trainer_accumulate(t, l->seqs, k, token_weights, &b, &loss, err) || trainer_step(t, &opt, &norm, err))
        return error_prefix(err, "training step %ld", step);
    metric_add(log, step, "loss", loss);
    metric_add(log, step, "norm", norm);
    metric_add(log, step, "lr", lr);
    if (l->ex[0].old_logp) metric_add(log, step, "clipped", b.counts.clipped / b.z);
    if (l->ex[0].ref_logp) metric_add(log, step, "kl", b.counts.kl / b.z);
    return 0;
}

static int loop_run(Model *m, Trainer *t, Loop *l, const TrainingOptions *o, MetricLog *log, Error *err)
{
    Checkpoint c = {.dir = o->checkpoint, .spec = o->spec};
    long step = 0;
    if (o->checkpoint && checkpoint_load(&c, m, t, log, &step, err)) return -1;
    if (step) log_info("continuing at step %ld of %ld", step, l->steps);
    Progress p;
    progress_start(&p, "train", "steps", step, l->steps);
    double saved = clock_seconds();
    for (; step < l->steps; step++) {
        int stop = stop_requested();
        int due = o->checkpoint_s > 0 && clock_seconds() - saved > o->checkpoint_s;
        if (o->checkpoint && (stop || due)) {
            if (checkpoint_save(&c, m, t, log, step, err)) return -1;
            saved = clock_seconds();
        }
        if (stop) return error_set(err, "stopped at step %ld of %ld; the same command continues", step, l->steps);
        if (one_step(t, l, o, step, log, err)) return -1;
        progress_set(&p, step + 1);
    }
    progress_end(&p);
    return 0;
}

int training_run(Model *m, const Example *ex, long n, const TrainingOptions *o, const char *metrics_path, Error *err)
{
    if (n == 0) return error_set(err, "no examples to train on");
    Trainer *t;
    if (trainer_create(m, o->max_tokens, &t, err)) return -1;
    Loop l = {.ex = ex, .n = n, .epoch = -1};
    l.per_epoch = (n + o->batch - 1) / o->batch;
    l.first_per_epoch = (o->n_first + o->batch - 1) / o->batch;
    l.first_steps = l.first_per_epoch * o->first_epochs;
    l.steps = l.first_steps + l.per_epoch * o->epochs;
    l.order = memory_array((size_t)n, sizeof *l.order);
    l.members = memory_array((size_t)o->batch, sizeof *l.members);
    l.seqs = memory_array((size_t)o->batch, sizeof *l.seqs);
    MetricLog log = {0};
    int rc = loop_run(m, t, &l, o, &log, err);
    if (!rc && metrics_path) rc = metric_write(&log, metrics_path, o->spec, err);
    if (!rc && log.n >= 3) log_info("%ld steps, last loss %.4f", l.steps, metric_last(&log, "loss"));
    metric_release(&log);
    free(l.order);
    free(l.members);
    free(l.seqs);
    trainer_free(t);
    return rc;
}

void training_forget(const TrainingOptions *o)
{
    if (o->checkpoint) checkpoint_remove(o->checkpoint);
}

int training_logprobs(Model *m, const Example *ex, long n, int batch, float **out, Error *err)
{
    Sequence *seqs = memory_array((size_t)batch, sizeof *seqs);
    float **lp = memory_array((size_t)batch, sizeof *lp);
    int rc = 0;
    for (long first = 0; !rc && first < n; first += batch) {
        int k = 0;
        for (; k < batch && first + k < n; k++) {
            seqs[k] = (Sequence){ex[first + k].ids, ex[first + k].len};
            lp[k] = memory_array((size_t)seqs[k].len, sizeof **lp);
        }
        rc = model_logprobs(m, seqs, k, lp, err);
        for (int i = 0; i < k; i++) {
            const Example *e = &ex[first + i];
            if (!rc) {
                out[first + i] = memory_array((size_t)(e->len - e->prompt), sizeof(float));
                memcpy(out[first + i], lp[i] + e->prompt, (size_t)(e->len - e->prompt) * sizeof(float));
            }
            free(lp[i]);
        }
    }
    free(seqs);
    free(lp);
    return rc;
}

void examples_free(Example *ex, long n)
{
    for (long i = 0; i < n; i++) {
        free(ex[i].ids);
        free(ex[i].old_logp);
        free(ex[i].ref_logp);
    }
    free(ex);
}
