/* Rounds: a batch of kernels is judged in parallel, and the next one moves from the fastest. */
#include "tune/tune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stop.h"

/* RANKED: kernels of the model in the first batch. BATCH: of a round. SAY_S: after which the module is
 * described without a verdict. RIVAL_S: between two looks at the table of PyTorch's times. */
enum { RANKED = 6, BATCH = 8, BEAM = 3, SAY_S = 4, RIVAL_S = 2, PATIENCE_S = 600 };
/* WIDER: so many times as many kernels are ranked as are judged. STILL_S: without news the search says that
 * it goes on. AHEAD: kernels that wait for verdicts where a simulator ranks. */
enum { WIDER = 3, STILL_S = 10, AHEAD = 2 };
static const double least_step = 1.005; /* what counts as a rise */

static int is_better(const Tune *t, int a, int b)
{
    if (b < 0) return 1;
    double x = t->all[a]->speedup, y = t->all[b]->speedup;
    return x > y || (x == y && a < b);
}

/* Writes a kernel as the best one, and says so on stdout where it is faster than the baseline: a package
 * may be made of it. */
static int write_best(Tune *t, int at, Error *err)
{
    const TuneCandidate *c = t->all[at];
    if (t->written == at) return 0;
    if (file_write_atomic(t->o->output, c->source, strlen(c->source), err)) return -1;
    t->written = at;
    if (c->low > 1) {
        printf("best %.3f\n", c->speedup);
        fflush(stdout);
    }
    return 0;
}

/* The best one counts as a rise over another. */
static int rises(const Tune *t, int over)
{
    return t->best >= 0 &&
           (over < 0 || t->all[t->best]->speedup > least_step * t->all[over]->speedup);
}

/* ---- what is judged next ---- */

static long submit(Tune *t, const TuneCandidate *c, const char *device_class)
{
    Job job;
    job_init(&job, t->o->task, device_class, c->source, t->o->seed);
    return submitter_add(t->submitter, &job, 0);
}

/* What a candidate may take that is not submitted: by the simulator that has ranked it, or by the model. */
static double hope_us(const TuneCandidate *c, int ranked)
{
    if (c->job >= 0 || c->ranked != ranked) return HUGE_VAL;
    return ranked ? c->predicted_us : c->model_us;
}

/* The candidate that is expected to be the fastest of those that are ranked, or are not yet, and not
 * submitted; -1: there is none. */
static int next_best(const Tune *t, int ranked)
{
    int best = -1;
    for (int i = 0; i < t->n; i++) {
        const double us = hope_us(t->all[i], ranked);
        if (us < HUGE_VAL && (best < 0 || us < hope_us(t->all[best], ranked))) best = i;
    }
    return best;
}

/* Keeps a GPU at work: one candidate is judged, and another one compiled, while a simulator ranks the rest. A
 * GPU without work takes the model's word. */
static void feed(Tune *t)
{
    int open = 0, ranking = 0, at;
    for (int i = 0; i < t->n; i++) {
        open += t->all[i]->job >= 0 && !t->all[i]->judged;
        ranking |= t->all[i]->rank_job >= 0 && !t->all[i]->ranked;
    }
    while (open < AHEAD && (t->left > 0 || (ranking && !open))) {
        at = next_best(t, 1);
        if (at < 0 && !open) at = next_best(t, 0);
        if (at < 0) return;
        t->all[at]->job = submit(t, t->all[at], t->o->device_class);
        t->left--;
        open++;
    }
}

/* ---- verdicts ---- */

static void keep_verdict(TuneCandidate *c, const Verdict *v, double at)
{
    c->judged = 1;
    c->outcome = v->outcome;
    c->speedup = v->speedup, c->low = v->score, c->high = v->high;
    c->us = v->time_us, c->baseline_us = v->baseline_us;
    c->light_us = v->light_us, c->light_is_flops = v->light_is_flops;
    c->found_s = at;
    snprintf(c->message, sizeof c->message, "%s", v->message);
}

static void keep_rank(TuneCandidate *c, const Verdict *v)
{
    c->ranked = 1;
    c->predicted_us = v->outcome == OUTCOME_OK ? v->time_us : HUGE_VAL;
}

/* The line that says what the generator can do with the module: with the first verdict, or when there is none
 * for a while. */
static void say_bound(Tune *t)
{
    Buffer line;
    if (t->bound_said++ || (t->o->quiet && !bound_is_hopeless(&t->bound))) return;
    buffer_init(&line, 4096);
    bound_write(&t->bound, t->o->gpu, &line);
    log_info("%s", line.data);
    buffer_release(&line);
}

static int on_verdict(void *ctx, long index, const Verdict *v, Error *err)
{
    Tune *t = ctx;
    int at = -1;
    for (int i = 0; i < t->n; i++) {
        if (t->all[i]->job == index) at = i;
        if (t->all[i]->rank_job == index) keep_rank(t->all[i], v);
    }
    if (at < 0) return 0;
    keep_verdict(t->all[at], v, clock_seconds() - t->begun);
    if (v->outcome == OUTCOME_EVALUATOR_ERROR)
        return error_set(err, ERROR_SERVER, "an evaluator failed: %s", v->message);
    if (v->outcome != OUTCOME_OK) return 0;
    if (!t->bound.measured) bound_measured(&t->bound, v->baseline_us, v->predicted);
    if (!bound_is_hopeless(&t->bound)) say_bound(t);
    if (!is_better(t, at, t->best)) return 0;
    t->best = at;
    if (!rises(t, t->written)) return 0;
    tune_say_best(t);
    t->said = clock_seconds();
    return write_best(t, at, err) || tune_write_report(t, err) ? -1 : 0;
}

static int on_turn(void *ctx, Error *err)
{
    Tune *t = ctx;
    const double now = clock_seconds();
    if (now - t->begun > SAY_S) say_bound(t);
    if (now - t->rival_sought > RIVAL_S) {
        t->rival_sought = now;
        if (tune_say_rival(t) && tune_write_report(t, err)) return -1;
    }
    if (now - t->said > STILL_S) {
        t->said = now;
        tune_say_still(t);
    }
    if (t->bound.measured && bound_is_hopeless(&t->bound))
        return error_set(err, ERROR_STOPPED, "nothing can be gained");
    feed(t);
    if (!t->o->deadline || now < t->o->deadline) return 0;
    return error_set(err, ERROR_STOPPED, "the time is over");
}

/* Takes the jobs that nobody has begun from the queue. */
static void withdraw(const Tune *t)
{
    Error err;
    int gone;
    for (long i = 0; i < submitter_count(t->submitter); i++) {
        const Submission *s = submitter_at(t->submitter, i);
        if (!s->verdict && s->queued && queue_withdraw(t->o->queue, s->key, &gone, &err)) return;
    }
}

static int run_jobs(Tune *t, Error *err)
{
    return submitter_run(t->submitter,
                         &(SubmitterOptions){.queue = t->o->queue, .patience_s = PATIENCE_S}, err);
}

/* Submits the candidates from `from` on, or, where a simulator ranks them, the first kernel of the search:
 * others follow it. */
static void submit_batch(Tune *t, int from)
{
    for (int i = from; i < t->n; i++)
        if (!t->o->ranks || !i) t->all[i]->job = submit(t, t->all[i], t->o->device_class);
    for (int i = from; i < t->n && t->o->ranks; i++)
        t->all[i]->rank_job = submit(t, t->all[i], t->o->ranks);
    t->left = t->o->ranks ? BATCH : 0;
}

/* Judges the candidates from `from` on. 1: the time is over. */
static int judge(Tune *t, int from, Error *err)
{
    submit_batch(t, from);
    int rc = run_jobs(t, err);
    for (int i = 0; i < t->n; i++)
        if (t->all[i]->judged && t->all[i]->outcome == OUTCOME_OK && is_better(t, i, t->best))
            t->best = i;
    Error why;
    if (rises(t, t->kept)) t->kept = t->best;
    if ((t->kept >= 0 && write_best(t, t->kept, &why)) || tune_write_verdicts(t, &why)) {
        *err = why;
        return -1;
    }
    if (!rc) return 0;
    withdraw(t);
    if (err->code != ERROR_STOPPED) return -1;
    t->ended = stop_requested()               ? "it was stopped"
               : bound_is_hopeless(&t->bound) ? "nothing can be gained"
                                              : "the time is over";
    return 1;
}

/* ---- the search ---- */

/* The fastest candidate below `rank` others; -1: there is none. */
static int at_rank(const Tune *t, int rank)
{
    for (int i = 0; i < t->n; i++) {
        if (!t->all[i]->judged || t->all[i]->outcome != OUTCOME_OK) continue;
        int before = 0;
        for (int k = 0; k < t->n; k++)
            before += k != i && t->all[k]->judged && t->all[k]->outcome == OUTCOME_OK &&
                      is_better(t, k, i);
        if (before == rank) return i;
    }
    return -1;
}

static int room(const Tune *t)
{
    int left = t->o->most - t->n, batch = t->o->ranks ? WIDER * BATCH : BATCH;
    return left < batch ? left : batch;
}

/* Moves from the beam, the fastest first, until a batch is full. */
static int expand(Tune *t, Error *err)
{
    int from = t->n, most = room(t);
    for (int rank = 0; rank < BEAM; rank++) {
        int at = at_rank(t, rank), left = most - (t->n - from);
        /* The fastest one takes the batch but for one place of each other. */
        int own = left - (BEAM - 1 - rank);
        if (at < 0 || own < 1) continue;
        if (tune_add_moves(t, t->all[at], own, err) < 0) return -1;
    }
    return t->n - from;
}

/* The kernel of the last rise has no moves that are not judged, and none of them rises. */
static int is_still(const Tune *t)
{
    return t->kept >= 0 && !rises(t, t->kept) &&
           t->all[t->kept]->next_move >= 2 * t->all[t->kept]->genes.n;
}

static int rounds(Tune *t, Error *err)
{
    while (!t->ended) {
        int from = t->n, n = expand(t, err);
        if (n < 0 || (n > 0 && judge(t, from, err) < 0)) return -1;
        if (!n)
            t->ended = t->n >= t->o->most ? "it has judged as many kernels as it may"
                                          : "no gene is left to move";
        else if (!t->ended && is_still(t))
            t->ended = "no gene moves it by more than 0.5%";
    }
    return 0;
}

static int search(Tune *t, Error *err)
{
    Genes none = {0};
    if (tune_add(t, &none, "the first kernel", err) < 0) return -1;
    const TuneCandidate *c = t->all[0];
    const Estimate e = {.gpu = t->o->gpu, .n = c->n_kernels, .kernel = c->kernel};
    if (bound_find(t->o->sized, c->source, &e, &t->bound, err)) return -1;
    snprintf(t->bound.why, sizeof t->bound.why, "%s", c->why);
    if (bound_is_hopeless(&t->bound)) return TUNE_HOPELESS;
    if (t->o->only_bound) {
        say_bound(t);
        return TUNE_FOUND;
    }
    if (tune_add_ranked(t, t->o->ranks ? WIDER * RANKED : RANKED, err) || judge(t, 0, err) < 0)
        return -1;
    if (t->bound.measured && bound_is_hopeless(&t->bound)) return TUNE_HOPELESS;
    if (!t->ended && t->best < 0) t->ended = "none of the first kernels is right";
    if (rounds(t, err)) return -1;
    tune_say_rival(t);
    tune_say_end(t);
    if (tune_write_report(t, err)) return -1;
    return t->kept >= 0 && t->all[t->kept]->low > 1 ? TUNE_FOUND : TUNE_NOTHING;
}

int tune_run(const TuneOptions *o, Error *err)
{
    Tune t = {.o = o, .best = -1, .written = -1, .kept = -1, .begun = clock_seconds()};
    t.said = t.begun;
    t.submitter =
        submitter_new(2 * o->most + 2,
                      &(SubmitterHooks){.on_verdict = on_verdict, .on_turn = on_turn, .ctx = &t});
    int rc = search(&t, err);
    if (rc == TUNE_HOPELESS) say_bound(&t);
    tune_free(&t);
    return rc;
}
