/* Inputs are drawn as for timing, then outliers are planted at places that follow from the seed. */
#include "eval/judge/outliers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "eval/judge/loaded_ops.h"
#include "tasks/derive/sizes.h"
#include "tasks/task_graph.h"

enum {
    TRIAL = 4, /* of case_seed, in no other run */
    MANY_TERMS = 1 << 16,
    PLANTED = 16,    /* in an input: one in each part of equal length */
    LEAST = 1 << 12, /* elements of an input that takes outliers */
    CHUNK = 512
};

/* An outlier is at least the number of elements divided by this: together they are larger than the sum of all
 * magnitudes. */
static const double divisor = 2;
static const double shaken = 0x1p-20;
/* Thread-instructions of a sequence that a simulator runs for this. */
static const double short_work = 6e8;
/* Shares of an output's root mean square: what shaken inputs may move, and what a candidate may differ. */
static const double steady_share = 0x1p-13, tolerance_share = 0x1p-9;

typedef struct {
    float *values; /* n of the output */
    size_t n;
    double square; /* mean of the squares */
} Output;

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

static void plant(const TaskTensor *x, uint64_t seed, float *v, size_t n)
{
    Random r;
    size_t part = n / PLANTED;
    random_init(&r, seed, random_hash(x->name, strlen(x->name)));
    for (size_t i = 0; i < PLANTED; i++) {
        size_t at = i * part + random_below(&r, part);
        double size = (double)n / divisor * (1 + random_uniform(&r));
        int negative = random_below(&r, 2) && x->draw != DRAW_POSITIVE;
        v[at] = (float)(negative ? -size : size);
    }
}

static void shake(float *v, size_t n)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) v[i] = (float)((double)v[i] * (i % 3 ? 1 + shaken : 1 - shaken));
}

static void case_release(Case *c)
{
    for (int i = 0; i < c->task->n_inputs; i++) free(c->inputs[i]);
}

/* The case has inputs in host memory and expects nothing. Release it in every case. */
static int case_draw(Case *c, Error *err)
{
    const Task *t = c->task;
    for (int i = 0; i < t->n_inputs; i++) {
        const TaskTensor *x = &t->inputs[i];
        size_t n, size = dtype_size(x->dtype);
        if (task_elements(t, c->workload, x, &n, err)) return -1;
        c->input_bytes[i] = n * size;
        c->inputs[i] = cases_tensor(n, size);
        if (task_draw(t, c->workload, i, c->variant, c->seed, c->scale, c->inputs[i], err))
            return -1;
        if (takes(x, n)) plant(x, c->seed, c->inputs[i], n);
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

/* Compare the outputs of a run with those that were kept. Returns 1 when they differ by more than `share`. */
static int compare_outputs(const Run *r, const Output *all, double share, int *output,
                           TaskDifference *d, Error *err)
{
    for (int i = 0; i < r->n_outputs; i++) {
        const Output *o = &all[i];
        double atol = share * sqrt(o->square), want[CHUNK];
        float *got = cases_tensor(o->n, sizeof *got);
        int rc = read_output(r, i, got, err);
        *d = (TaskDifference){0};
        *output = i;
        for (size_t from = 0; from < o->n && !rc; from += CHUNK) {
            size_t n = o->n - from < CHUNK ? o->n - from : CHUNK;
            dtype_to_double(DTYPE_F32, o->values + from, want, n);
            task_differences(DTYPE_F32, got + from, want, from, n, atol, share, d);
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

/* A GPU runs in milliseconds what a simulator takes many seconds for. */
static int is_short(const Loaded *l, const DeviceTiming *t)
{
    return !l->ops->info(l->device)->predicted ||
           (instructions(t->counters, t->n_counters) <= short_work &&
            instructions(t->baseline_counters, t->n_baseline_counters) <= short_work);
}

/* On a device that predicts times the baseline is not kept. */
static int open_baseline(const BaselineContext *x, Baseline *b, Loaded *own, Loaded **out, Task *t,
                         const Workload *w, Finding *f, Error *err)
{
    *out = b->loaded.task ? &b->loaded : own;
    if (*out != own) return 0;
    int rc = loaded_compile(own, x->ops, x->device, x->compiler, t, &b->candidate, 1, f, err);
    return rc ? rc : loaded_ops_compile(own, &w, 1, f, err);
}

/* Keep what the baseline gives for c. The inputs are shaken then, which moves no steady output by much.
 * Returns 1 when there is nothing to expect: *why. */
static int expect(Loaded *baseline, Case *c, Output *all, const char **why, Error *err)
{
    Run r = {0};
    Finding f;
    TaskDifference d;
    int output, rc = run_open(&r, baseline, c, NULL, &f, err);
    *why = "the baseline does not end";
    if (!rc) rc = run_launch(&r, &f, err);
    if (!rc) {
        *why = "the baseline is not steady there";
        rc = keep_outputs(&r, all, err);
    }
    if (!rc) {
        case_shake(c);
        rc = run_refill(&r, c, 0, err);
        if (!rc) rc = run_launch(&r, &f, err);
        if (!rc) rc = compare_outputs(&r, all, steady_share, &output, &d, err);
    }
    run_close(&r);
    return rc;
}

static int run_candidate(Loaded *l, const Case *c, const Output *all, Finding *f, Error *err)
{
    Run r = {0};
    TaskDifference d;
    Error text;
    int output, rc = loaded_again(l, f, err);
    if (!rc) rc = run_open(&r, l, c, NULL, f, err);
    snprintf(r.where, sizeof r.where, "time, with a few outliers among the inputs");
    if (!rc) rc = run_launch(&r, f, err);
    int differs = rc ? rc : compare_outputs(&r, all, tolerance_share, &output, &d, err);
    if (!rc && differs > 0) {
        task_difference_text(l->task, c->workload, output,
                             tolerance_share * sqrt(all[output].square), tolerance_share, &d,
                             &text);
        finding_set(
            f, OUTCOME_WRONG_RESULT, 0,
            "%s: %.1500s; the baseline's result is expected: is a part of a long sum left out, or "
            "does a number overflow?",
            r.where, text.text);
    }
    run_close(&r);
    return differs;
}

/* Returns 1 when there is nothing to expect: *why. */
static int prepare(const BaselineContext *x, Baseline *b, Case *c, Task *t, Output *all,
                   const char **why, Error *err)
{
    Loaded own = {0}, *baseline;
    Finding unused;
    *why = "the baseline cannot be loaded again";
    int rc = case_draw(c, err);
    if (!rc) rc = open_baseline(x, b, &own, &baseline, t, c->workload, &unused, err);
    if (!rc) rc = expect(baseline, c, all, why, err);
    loaded_close(&own);
    return rc;
}

int outliers_check(const BaselineContext *x, Baseline *b, Loaded *l, const Workload *timed,
                   const DeviceTiming *timing, ChecksPassed *passed, Finding *f, Error *err)
{
    Task *t = l->task;
    Output all[TASK_MAX_TENSORS] = {{0}};
    const char *why = "a simulator takes too long";
    if (!matter(t, timed)) return 0;
    Case c = {
        .task = t, .workload = timed, .scale = 1, .seed = case_seed(x->seed, t, timed, TRIAL)};
    int rc = is_short(l, timing) ? prepare(x, b, &c, t, all, &why, err) : 1;
    if (rc > 0) {
        checks_pass(passed, "no run of long sums with outliers: %s", why);
        rc = 0;
    } else if (!rc) {
        rc = run_candidate(l, &c, all, f, err);
        if (!rc) checks_pass(passed, "time, with a few outliers: all blocks");
    }
    for (int i = 0; i < t->n_outputs; i++) free(all[i].values);
    case_release(&c);
    log_debug("run with outliers");
    return rc;
}
