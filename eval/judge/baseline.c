#include "eval/judge/baseline.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/judge/checks.h"
#include "eval/judge/predicted_timing.h"

/* A plan of library calls alone has nothing to compile. */
int baseline_compile_and_load(const BaselineMaker *m, Task *t, const Candidate *c, int trusted,
                              Loaded *out, Finding *f, Error *err)
{
    const char *names[PLAN_MAX_STEPS];
    CompileResult code = {0};
    for (int i = 0; i < c->plan.n_kernels; i++) names[i] = c->plan.kernels[i];
    CompileRequest request = {m->ops->info(m->device)->arch, c->source, c->len, c->plan.n_kernels,
                              names};
    int rc = c->plan.n_kernels ? compiler_run(m->compiler, &request, &code, err) : 0;
    if (!rc && c->plan.n_kernels && !code.ok) {
        int plan_line = code.bad_name >= 0 && !code.line ? c->plan.kernel_line[code.bad_name] : 0;
        if (plan_line)
            finding_set(f, OUTCOME_PLAN_ERROR, plan_line, "line %d: %s", plan_line, code.message);
        else
            finding_set(f, OUTCOME_COMPILE_ERROR, code.line, "%s", code.message);
        rc = 1;
    }
    if (!rc) return loaded_open(out, m->ops, m->device, t, &c->plan, trusted, &code, f, err);
    compile_result_release(&code);
    return rc;
}

static int predict(const BaselineMaker *m, const Workload *w, Baseline *b, Finding *f, Error *err)
{
    ChecksPassed passed = {0};
    DeviceTiming *timing = memory_alloc(sizeof *timing);
    int rc = timing_predict(&b->loaded, m->cases, w, m->seed, timing, &passed, f, err);
    if (!rc) b->us = timing->candidate_us[0];
    b->n_counters = timing->n_counters;
    memcpy(b->counters, timing->counters, sizeof b->counters);
    free(timing);
    loaded_close(&b->loaded);
    return rc;
}

/* On a device with a clock the baseline runs once and is compared, as every candidate is. */
static int run_once(const BaselineMaker *m, Task *t, const Workload *w, Baseline *b, Finding *f,
                    Error *err)
{
    Rig r = {0};
    const Case *c = cases_get(m->cases, t, w, VARIANT_DRAWN, case_seed(m->seed, t, w, 0), 1.0, err);
    if (!c) return -1;
    int rc = rig_open(&r, &b->loaded, c, NULL, f, err);
    if (!rc) rc = rig_run(&r, f, err);
    if (!rc) rc = rig_compare(&r, f, err);
    rig_close(&r);
    return rc;
}

const char *baseline_text(const Task *t, const char *given, int predicted)
{
    return given                                   ? given
           : !predicted && t->baseline_cuda_source ? t->baseline_cuda_source
                                                   : t->baseline_source;
}

int baseline_prepare(const BaselineMaker *m, Task *t, const Workload *w, Baseline *b, Error *err)
{
    Outcome outcome;
    Finding f;
    int line, predicted = m->ops->info(m->device)->predicted;
    const char *source = baseline_text(t, m->source, predicted);
    int rc = candidate_parse_trusted(source, strlen(source), &b->candidate, &outcome, &line, err);
    if (rc) {
        error_prefix(err, "the baseline of task %s", t->name);
    } else {
        rc = baseline_compile_and_load(m, t, &b->candidate, 1, &b->loaded, &f, err);
        if (!rc) rc = checks_plan(&b->loaded, w, &f);
        if (!rc) rc = predicted ? predict(m, w, b, &f, err) : run_once(m, t, w, b, &f, err);
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
