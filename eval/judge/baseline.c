/* Compile, check and time a task's baseline. Its failure is an error of the evaluator. */
#include "eval/judge/baseline.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/judge/checks.h"
#include "eval/judge/loaded_ops.h"
#include "eval/judge/predicted_timing.h"

static int predict(const BaselineContext *x, const Workload *w, Baseline *b, Finding *f, Error *err)
{
    ChecksPassed passed = {0};
    DeviceTiming *timing = memory_alloc(sizeof *timing);
    const Workload *small = task_workload(b->loaded.task, ROLE_SIM);
    int rc = predicted_measure(&b->loaded, x->cases, small, x->seed, timing, &passed, f, err);
    if (!rc) rc = predicted_timed(&b->loaded, x->cases, small, w, x->seed, timing, &passed, f, err);
    if (!rc) b->us = timing->candidate_us[0];
    b->n_counters = timing->n_counters;
    memcpy(b->counters, timing->counters, sizeof b->counters);
    free(timing);
    loaded_close(&b->loaded);
    return rc;
}

/* On a device with a clock: run the baseline once and compare its outputs. */
static int run_once(const BaselineContext *x, Task *t, const Workload *w, Baseline *b, Finding *f,
                    Error *err)
{
    Run run = {0};
    const Case *c = cases_get(x->cases, t, w, VARIANT_DRAWN, case_seed(x->seed, t, w, 0), 1.0, err);
    if (!c) return -1;
    int rc = run_open(&run, &b->loaded, c, NULL, f, err);
    if (!rc) rc = run_launch(&run, f, err);
    if (!rc) rc = run_compare(&run, f, err);
    run_close(&run);
    return rc;
}

/* The kernels of op lines for the workloads that run. */
static int compile_ops(Loaded *l, const Workload *w, int predicted, Finding *f, Error *err)
{
    const Workload *list[] = {w, task_workload(l->task, ROLE_SIM)};
    return loaded_ops_compile(l, list, predicted ? 2 : 1, f, err);
}

const char *baseline_text(const Task *t, const char *given)
{
    return given ? given : t->baseline_cuda_source ? t->baseline_cuda_source : t->baseline_source;
}

int baseline_prepare(const BaselineContext *x, Task *t, const Workload *w, Baseline *b, Error *err)
{
    Outcome outcome;
    Finding f;
    int line, predicted = x->ops->info(x->device)->predicted;
    const char *source = baseline_text(t, x->source);
    int rc = candidate_parse_trusted(source, strlen(source), &b->candidate, &outcome, &line, err);
    if (rc) {
        error_prefix(err, "the baseline of task %s", t->name);
    } else {
        rc = loaded_compile(&b->loaded, x->ops, x->device, x->compiler, t, &b->candidate, 1, &f,
                            err);
        if (!rc) rc = checks_plan(&b->loaded, w, &f);
        if (!rc) rc = compile_ops(&b->loaded, w, predicted, &f, err);
        if (!rc) rc = predicted ? predict(x, w, b, &f, err) : run_once(x, t, w, b, &f, err);
        if (rc > 0)
            rc = error_set(err, ERROR_INVALID, "the baseline of task %s fails: %s: %.600s", t->name,
                           outcome_name(f.outcome), f.message);
    }
    if (rc)
        baseline_release(b);
    else
        b->ready = 1;
    return rc;
}

void baseline_release(Baseline *b)
{
    loaded_close(&b->loaded);
    candidate_release(&b->candidate);
    b->ready = 0;
}
