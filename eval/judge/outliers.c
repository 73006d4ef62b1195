/* Inputs are drawn as for timing, then outliers are planted at places that follow from the seed:
 * many of them, and later one in each input, which a kernel cannot know from a part of the input. */
#include "eval/judge/outliers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "eval/judge/baseline.h"
#include "eval/judge/loaded_ops.h"
#include "eval/judge/paired_interval.h"
#include "eval/judge/predicted_timing.h"
#include "tasks/derive/sizes.h"
#include "tasks/task_graph.h"

enum {
    TRIAL = 4, /* of case_seed, in no other run */
    MANY_TERMS = 1 << 16,
    PLANTED = 16,    /* in an input: one in each part of equal length */
    ALONE = 2,       /* runs with one in an input */
    LEAST = 1 << 12, /* elements of an input that takes outliers */
    CHUNK = 512
};

/* An outlier is at least the number of elements divided by this: 16 are larger together than the
 * sum of all magnitudes, and one is a good part of it. */
static const double divisor = 2;
static const double shaken = 0x1p-20;
/* Thread-instructions of a sequence that a simulator runs for this. */
static const double short_work = 6e8;
/* Shares of an output's root mean square: what shaken inputs may move, and what a candidate may
 * differ. */
static const double steady_share = 0x1p-13, tolerance_share = 0x1p-9;

static const double warm_s = 0.010; /* of the baseline's runs before the candidate's: clocks rise */
static const double phase = 0.5;    /* DeviceClockOps.time */

typedef struct {
    float *values; /* n of the output */
    size_t n;
    double square; /* mean of the squares */
} Output;

typedef struct {
    size_t at;
    float was; /* in place of the outlier */
} Place;

typedef struct {
    Judgement *judgement;
    Case c;
    Place placed[TASK_MAX_TENSORS][PLANTED];
    int n_placed;                 /* in each input that takes outliers */
    Output all[TASK_MAX_TENSORS]; /* of the baseline */
    Loaded own;                   /* the baseline, on a device that predicts times */
    Loaded *side[2];              /* BASELINE, CANDIDATE */
    char at[200];                 /* the workload, in words */
} Outliers;

enum { BASELINE, CANDIDATE, SIDES };
/* Of the ratio of one pair on usual inputs, which is an upper bound. */
static const double usual_share = 0.75;
enum { UNKNOWN = 2 }; /* besides 0, 1 and -1: there is nothing to expect */

/* ---- inputs ---- */

static int takes(const TaskTensor *x, size_t n)
{
    return x->dtype == DTYPE_F32 && x->draw != DRAW_INTEGER && !x->parameter && n >= LEAST;
}

/* All floating numbers are float32, an input takes outliers, and a sum is long. */
static int matter(const Task *t, const Workload *w)
{
    GraphBound *b;
    int taken = 0;
    size_t n;
    if (!t->graph) return 0;
    for (int i = 0; i < t->n_inputs; i++) {
        const TaskTensor *x = &t->inputs[i];
        if (x->dtype == DTYPE_F16 || x->dtype == DTYPE_BF16 || task_elements(t, w, x, &n, NULL))
            return 0;
        taken |= takes(x, n);
    }
    for (int i = 0; i < t->n_outputs; i++)
        if (t->outputs[i].dtype != DTYPE_F32) return 0;
    if (!taken || task_graph_bind(t, w, &b, NULL)) return 0;
    int64_t terms = sizes_terms(b);
    graph_bound_free(b);
    return terms >= MANY_TERMS;
}

static void plant(const TaskTensor *x, uint64_t seed, float *v, size_t n, Place *placed,
                  int n_placed)
{
    Random r;
    size_t part = n_placed ? n / (size_t)n_placed : 0;
    random_init(&r, seed, random_hash(x->name, strlen(x->name)));
    for (int i = 0; i < n_placed; i++) {
        size_t at = (size_t)i * part + random_below(&r, part);
        double size = (double)n / divisor * (1 + random_uniform(&r));
        int negative = random_below(&r, 2) && x->draw != DRAW_POSITIVE;
        placed[i] = (Place){at, v[at]};
        v[at] = (float)(negative ? -size : size);
    }
}

/* The device forgets an input. */
static void take_back(Outliers *o, int i)
{
    const Machine *m = &o->judgement->evaluator->machine;
    if (o->c.golden_inputs[i]) m->ops->golden->free(m->device, o->c.golden_inputs[i]);
    o->c.golden_inputs[i] = NULL;
}

/* A device that keeps contents gets the inputs once for all runs on them; where it does not take them, each
 * run writes those of the host. */
static void give_inputs(Outliers *o)
{
    const Machine *m = &o->judgement->evaluator->machine;
    Case *c = &o->c;
    Error ignored;
    for (int i = 0; i < c->task->n_inputs && m->ops->golden; i++) {
        const TaskTensor *x = &c->task->inputs[i];
        if (c->golden_inputs[i] && !takes(x, c->input_bytes[i] / dtype_size(x->dtype))) continue;
        take_back(o, i);
        m->ops->golden->keep(m->device, c->inputs[i], c->input_bytes[i], &c->golden_inputs[i],
                             &ignored);
    }
}

/* Plant n outliers in each input in place of those that are there. */
static void plant_all(Outliers *o, int n_placed, uint64_t seed)
{
    Case *c = &o->c;
    for (int i = 0; i < c->task->n_inputs; i++) {
        const TaskTensor *x = &c->task->inputs[i];
        size_t n = c->input_bytes[i] / dtype_size(x->dtype);
        float *v = c->inputs[i];
        if (!takes(x, n)) continue;
        for (int k = 0; k < o->n_placed; k++) v[o->placed[i][k].at] = o->placed[i][k].was;
        plant(x, seed, v, n, o->placed[i], n_placed);
    }
    o->n_placed = n_placed;
    give_inputs(o);
}

static void shake(float *v, size_t n)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) v[i] = (float)((double)v[i] * (i % 3 ? 1 + shaken : 1 - shaken));
}

/* The case has inputs in host memory and expects nothing. They are released in every case. */
static int case_draw(Case *c, Error *err)
{
    const Task *t = c->task;
    for (int i = 0; i < t->n_inputs; i++) {
        const TaskTensor *x = &t->inputs[i];
        size_t n, size = dtype_size(x->dtype);
        if (task_elements(t, c->workload, x, &n, err)) return -1;
        c->input_bytes[i] = n * size;
        c->inputs[i] = cases_tensor(n, size);
        const TaskCase of = case_of(c);
        if (task_draw(&of, i, c->inputs[i], err)) return -1;
    }
    for (int i = 0; i < t->n_outputs; i++) {
        size_t n;
        if (task_elements(t, c->workload, &t->outputs[i], &n, err)) return -1;
        c->output_bytes[i] = n * sizeof(float);
    }
    return 0;
}

static void case_shake(Case *c)
{
    for (int i = 0; i < c->task->n_inputs; i++) {
        size_t n = c->input_bytes[i] / dtype_size(c->task->inputs[i].dtype);
        if (takes(&c->task->inputs[i], n)) shake(c->inputs[i], n);
    }
}

/* ---- outputs ---- */

static int read_output(const Run *r, int i, float *to, Error *err)
{
    const Loaded *l = r->loaded;
    return l->ops->read(l->device, r->memory.outputs[i], to, r->test->output_bytes[i], err);
}

/* Keep the outputs of the run. Returns 1 when one is zero or not finite. */
static int keep_outputs(const Run *r, Output *all, Error *err)
{
    for (int i = 0; i < r->n_outputs; i++) {
        Output *o = &all[i];
        double squares = 0;
        o->n = r->test->output_bytes[i] / sizeof *o->values;
        o->values = cases_tensor(o->n, sizeof *o->values);
        if (read_output(r, i, o->values, err)) return -1;
#pragma omp simd reduction(+ : squares)
        for (size_t k = 0; k < o->n; k++) squares += (double)o->values[k] * (double)o->values[k];
        o->square = squares / (double)o->n;
        if (!(o->square > 0 && isfinite(o->square))) return 1;
    }
    return 0;
}

static void forget_outputs(Outliers *o)
{
    for (int i = 0; i < o->c.task->n_outputs; i++) {
        free(o->all[i].values);
        o->all[i].values = NULL;
    }
}

/* An output may differ by `share` of the size that its elements have on the average. */
static TaskComparison comparison(const Run *r, const Output *all, int output, double share)
{
    Tolerance by = {share * sqrt(all[output].square), share, NULL};
    return (TaskComparison){r->loaded->task, r->test->workload, output, by};
}

/* Compare the outputs of a run with those that were kept. Returns 1 when they differ by more than
 * `share`. */
static int compare_outputs(const Run *r, const Output *all, double share, int *output,
                           TaskDifference *d, Error *err)
{
    for (int i = 0; i < r->n_outputs; i++) {
        const Output *o = &all[i];
        const TaskComparison with = comparison(r, all, i, share);
        double want[CHUNK];
        float *got = cases_tensor(o->n, sizeof *got);
        int rc = read_output(r, i, got, err);
        *d = (TaskDifference){0};
        *output = i;
        for (size_t from = 0; from < o->n && !rc; from += CHUNK) {
            size_t n = o->n - from < CHUNK ? o->n - from : CHUNK;
            dtype_to_double(DTYPE_F32, o->values + from, want, n);
            task_differences(&with, got + from, want, from, n, d);
        }
        free(got);
        if (rc || d->bad) return rc ? -1 : 1;
    }
    return 0;
}

/* ---- runs ---- */

static double instructions(const DeviceCounter *c, int n)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(c[i].name, "thread_instructions")) return c[i].value;
    return INFINITY;
}

static int is_predicted(const Loaded *l)
{
    return l->ops->info(l->device)->predicted;
}

/* The module's own sizes have too many elements for the host. */
static const Workload *listed(const Judgement *j)
{
    return j->timed == j->task->own ? task_workload(j->task, ROLE_TIME) : j->timed;
}

/* A GPU runs in milliseconds what a simulator takes many seconds for. */
static int is_short(const Loaded *l, const DeviceTiming *t)
{
    return !is_predicted(l) ||
           (instructions(t->counters, t->n_counters) <= short_work &&
            instructions(t->baseline_counters, t->n_baseline_counters) <= short_work);
}

/* On a device that predicts times the baseline is not kept. */
static int open_baseline(Outliers *o, Fault *f)
{
    Judgement *j = o->judgement;
    Baseline *b = j->baseline;
    o->side[BASELINE] = &b->own.loaded;
    if (b->own.loaded.task) return 0;
    o->side[BASELINE] = &o->own;
    loaded_init(&o->own, &j->evaluator->machine, j->task, 1);
    int rc = loaded_compile(&o->own, &b->own.candidate, f);
    return rc ? rc : loaded_ops_compile(&o->own, &o->c.workload, 1, f);
}

/* Keep what the baseline gives. The inputs are shaken then, which moves no steady output by much.
 * Returns 1 when there is nothing to expect: *why. */
static int expect(Outliers *o, const char **why, Fault *f)
{
    Run r = {0};
    TaskDifference d;
    int output, rc = run_open(&r, o->side[BASELINE], &o->c, NULL, f);
    *why = "the baseline does not end";
    if (!rc) rc = run_launch(&r, f);
    if (!rc) {
        *why = "the baseline is not steady there";
        rc = keep_outputs(&r, o->all, &f->error);
    }
    if (!rc) {
        case_shake(&o->c);
        give_inputs(o);
        rc = run_refill(&r, &o->c, 0, &f->error);
        if (!rc) rc = run_launch(&r, f);
        if (!rc) rc = compare_outputs(&r, o->all, steady_share, &output, &d, &f->error);
    }
    run_close(&r);
    return rc;
}

static int compare_candidate(const Run *r, const Output *all, Fault *f)
{
    TaskDifference d;
    Error text;
    int output, rc = compare_outputs(r, all, tolerance_share, &output, &d, &f->error);
    if (rc <= 0) return rc;
    const TaskComparison with = comparison(r, all, output, tolerance_share);
    task_difference_text(&with, &d, &text);
    fault_set(f, OUTCOME_WRONG_RESULT, 0,
              "%s: %.1500s; the baseline's result is expected: is a part of a long sum left out, "
              "or does a number overflow?",
              r->where, text.text);
    return 1;
}

/* With all checks, and no clock. */
static int run_candidate(Outliers *o, const char *planted, Fault *f)
{
    Run r = {0};
    Loaded *l = o->side[CANDIDATE];
    int rc = loaded_again(l, f);
    if (!rc) rc = run_open(&r, l, &o->c, NULL, f);
    snprintf(r.where, sizeof r.where, "%s, with %s", o->at, planted);
    if (!rc) rc = run_launch(&r, f);
    if (!rc) rc = compare_candidate(&r, o->all, f);
    run_close(&r);
    return rc;
}

/* 1: the candidate takes too long at these sizes on usual inputs, too. A simulator chose them by what blocks
 * of the timed sizes take, and where a block does the same for fewer elements that is too little. */
static int is_long(Outliers *o)
{
    Run r = {0};
    Fault usual = {0};
    Loaded *l = o->side[CANDIDATE];
    if (o->c.workload == listed(o->judgement)) return 0;
    plant_all(o, 0, o->c.seed);
    int rc = loaded_again(l, &usual);
    if (!rc) rc = run_open(&r, l, &o->c, NULL, &usual);
    if (!rc) rc = run_launch(&r, &usual);
    run_close(&r);
    return rc > 0 && usual.outcome == OUTCOME_TIMEOUT;
}

/* ---- one outlier, and the time ---- */

static int timed_run(Run *r, ClockMode mode, double *us, Fault *f)
{
    const Loaded *l = r->loaded;
    DeviceClock clock = {0};
    if (is_predicted(l)) {
        DeviceTiming *t = memory_alloc(sizeof *t);
        run_announce(r);
        int rc = predicted_run(r, t, f);
        *us = t->n ? t->candidate_us[0] : 0;
        free(t);
        return rc;
    }
    int rc = l->ops->clock->time(l->device, r->launches, r->n_launches, mode, phase, &clock, f);
    if (rc > 0) run_fault(r, f);
    *us = clock.us;
    return rc;
}

/* The least time of the baseline. Its first run's outputs are kept. Returns 1 when they are no use. */
static int time_baseline(Outliers *o, Run *r, ClockMode mode, double *least, Fault *f)
{
    double us, since = clock_seconds();
    *least = INFINITY;
    for (int i = 0; !i || (!is_predicted(r->loaded) && clock_seconds() - since < warm_s); i++) {
        int rc = timed_run(r, mode, &us, f);
        if (!rc && !i) rc = keep_outputs(r, o->all, &f->error), since = clock_seconds();
        if (rc) return rc;
        *least = fmin(*least, us);
    }
    return 0;
}

/* Both sides on the same tensors. Returns UNKNOWN when the baseline does not run there. */
static int open_both(Outliers *o, Run run[SIDES], Fault *f)
{
    int rc = loaded_again(o->side[CANDIDATE], f);
    if (!rc) rc = run_open(&run[CANDIDATE], o->side[CANDIDATE], &o->c, NULL, f);
    snprintf(run[CANDIDATE].where, sizeof run[CANDIDATE].where,
             "time, with one outlier in each input");
    if (rc) return rc;
    rc = run_open(&run[BASELINE], o->side[BASELINE], &o->c, &run[CANDIDATE], f);
    return rc > 0 ? UNKNOWN : rc;
}

/* The baseline first, whose outputs are expected. The candidate runs once: a second run could give
 * the results of the first. *fast: the largest ratio that the times leave possible. Returns UNKNOWN
 * as above. */
static int run_both(Outliers *o, Run run[SIDES], double *fast, Fault *f)
{
    const DeviceTiming *t = o->judgement->verdict.timing;
    double us[SIDES];
    if (run_reset(&run[CANDIDATE], &f->error)) return -1;
    int rc = time_baseline(o, &run[BASELINE], t->mode, &us[BASELINE], f);
    if (rc) return rc > 0 ? UNKNOWN : rc;
    if (run_reset(&run[CANDIDATE], &f->error) || run_reset_own_buffers(&run[BASELINE], &f->error))
        return -1;
    rc = timed_run(&run[CANDIDATE], t->mode, &us[CANDIDATE], f);
    if (!rc) *fast = paired_fastest(t, us[BASELINE], us[CANDIDATE]);
    if (!rc) rc = run_inspect(&run[CANDIDATE], f);
    return rc ? rc : compare_candidate(&run[CANDIDATE], o->all, f);
}

static int run_alone(Outliers *o, double *fast, Fault *f)
{
    Run run[SIDES] = {{0}};
    Error ignored;
    double idle_s;
    const Loaded *l = o->side[CANDIDATE];
    int locked = 0, rc = open_both(o, run, f);
    if (!rc && l->ops->clock) rc = l->ops->clock->lock(l->device, &idle_s, &f->error), locked = !rc;
    if (!rc) rc = run_both(o, run, fast, f);
    if (locked && l->ops->clock->lock(l->device, NULL, rc < 0 ? &ignored : &f->error) && rc >= 0)
        rc = -1;
    for (int side = BASELINE; side < SIDES; side++) run_close(&run[side]);
    return rc;
}

static int usual_ratio(Outliers *o, double *fast)
{
    forget_outputs(o);
    plant_all(o, 0, o->c.seed);
    return run_alone(o, fast, &o->judgement->fault);
}

/* With one outlier in each input, and the clock. At other sizes than the timed ones the ratio is compared
 * with that on usual inputs. */
static int check_alone(Outliers *o)
{
    Judgement *j = o->judgement;
    double best = 0, fast = 0, low = j->verdict.low;
    if (o->c.workload != j->timed) {
        int rc = usual_ratio(o, &fast);
        if (rc) return rc == UNKNOWN ? 0 : rc;
        low = fmin(low, usual_share * fast);
    }
    for (int i = 0; i < ALONE; i++) {
        forget_outputs(o);
        plant_all(o, 1, o->c.seed + 1 + (uint64_t)i);
        int rc = run_alone(o, &fast, &j->fault);
        if (rc) return rc == UNKNOWN ? 0 : rc;
        best = fmax(best, fast);
    }
    if (best < low)
        return fault_cheat(
            &j->fault, "input_dispatch",
            "%.3f times as fast as the baseline on usual inputs, at most %.3f times where one "
            "of them is an outlier: a part of the work is done for unusual inputs alone",
            low, best);
    verdict_pass(&j->verdict, "time, with one outlier, twice: all blocks");
    return 0;
}

/* With one outlier in each input, but without a clock. */
static int check_untimed(Outliers *o)
{
    Judgement *j = o->judgement;
    const char *unused;
    for (int i = 0; i < ALONE; i++) {
        forget_outputs(o);
        plant_all(o, 1, o->c.seed + 1 + (uint64_t)i);
        int rc = expect(o, &unused, &j->fault);
        if (rc) return rc < 0 ? -1 : 0;
        rc = run_candidate(o, "one outlier in each input", &j->fault);
        if (rc) return rc;
    }
    verdict_pass(&j->verdict, "%s, with one outlier, twice: all blocks", o->at);
    return 0;
}

/* Returns 1 when there is nothing to expect: *why. */
static int prepare(Outliers *o, const char **why)
{
    Fault *f = &o->judgement->fault;
    *why = "the baseline cannot be loaded again";
    if (case_draw(&o->c, &f->error)) return -1;
    plant_all(o, PLANTED, o->c.seed);
    int rc = open_baseline(o, f);
    return rc ? rc : expect(o, why, f);
}

static int check(Outliers *o)
{
    Judgement *j = o->judgement;
    const char *too_long = "a simulator takes too long", *why = too_long;
    const Workload *w = o->c.workload;
    int rc = w && matter(j->task, w) ? prepare(o, &why) : 1;
    if (rc < 0) return -1;
    if (!rc) {
        rc = run_candidate(o, "a few outliers among the inputs", &j->fault);
        const int late = rc > 0 && j->fault.outcome == OUTCOME_TIMEOUT;
        if (rc && !(late && is_long(o))) return rc;
        if (late) j->fault = (Fault){0}, why = too_long;
    }
    if (rc > 0) {
        verdict_pass(&j->verdict, "no run of long sums with outliers: %s", why);
        return 0;
    }
    verdict_pass(&j->verdict, "%s, with a few outliers: all blocks", o->at);
    return w == listed(j) ? check_alone(o) : check_untimed(o);
}

int step_outliers(Judgement *j)
{
    Task *t = j->task;
    if (!matter(t, listed(j))) return 0;
    const Workload *w = is_short(&j->loaded, j->verdict.timing) ? listed(j) : predicted_fitting(j);
    Outliers *o = memory_alloc(sizeof *o);
    o->judgement = j;
    o->c = (Case){.task = t,
                  .workload = w,
                  .scale = 1,
                  .seed = case_seed(j->evaluator->seed, t, j->timed, TRIAL)};
    o->side[CANDIDATE] = &j->loaded;
    snprintf(o->at, sizeof o->at, "time");
    if (w && w != j->timed) task_workload_text(t, w, o->at, sizeof o->at);
    int rc = check(o);
    forget_outputs(o);
    loaded_close(&o->own);
    for (int i = 0; i < t->n_inputs; i++) {
        take_back(o, i);
        free(o->c.inputs[i]);
    }
    free(o);
    return rc;
}
