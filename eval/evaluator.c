#include "eval/evaluator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "eval/candidate.h"
#include "eval/statistics.h"
#include "eval/timing.h"

enum { TIMING_BUDGET_S = 5 };
static const size_t cases_bytes = (size_t)1 << 30;

/* The baseline of one task, made ready at the task's first candidate. */
typedef struct {
    int ready;
    Candidate candidate;
    Loaded loaded;              /* kept open on a device with a clock, for pairs */
    double us;                  /* predicted: the same on every run */
    int n_counters;
    DeviceCounter counters[DEVICE_MAX_COUNTERS];
} Baseline;

struct Evaluator {
    const DeviceOps *ops;
    Device *device;
    TaskSet tasks;
    Baseline *baselines;        /* one a task */
    Compiler *compiler;
    Cases *cases;
    uint64_t seed;
};

int evaluator_open(const EvaluatorOptions *opt, Evaluator **out, Error *err)
{
    Evaluator *e = memory_alloc(sizeof *e);
    const char *arg, *cache = opt->cache_dir ? opt->cache_dir : getenv("QUERN_CACHE");
    e->seed = opt->seed;
    e->cases = cases_new(cases_bytes);
    e->ops = device_find(opt->device, &arg, err);
    if (!e->ops || compiler_open(&(CompilerOptions){.cache_dir = cache && *cache ? cache : NULL}, &e->compiler, err) ||
        e->ops->open(arg, &e->device, err) || taskset_load(opt->tasks_root, NULL, &e->tasks, err)) {
        evaluator_close(e);
        return -1;
    }
    e->baselines = memory_array((size_t)e->tasks.n + 1, sizeof *e->baselines);
    *out = e;
    return 0;
}

void evaluator_close(Evaluator *e)
{
    for (int i = 0; e->baselines && i < e->tasks.n; i++) {
        loaded_close(&e->baselines[i].loaded);
        candidate_release(&e->baselines[i].candidate);
    }
    free(e->baselines);
    if (e->compiler) compiler_close(e->compiler);
    if (e->device) e->ops->close(e->device);
    taskset_release(&e->tasks);
    cases_free(e->cases);
    free(e);
}

const DeviceInfo *evaluator_device(const Evaluator *e)
{
    return e->ops->info(e->device);
}

const TaskSet *evaluator_tasks(const Evaluator *e)
{
    return &e->tasks;
}

/* Compile what a candidate's plan launches, and load it. */
static int compile_and_load(Evaluator *e, Task *t, const Candidate *c, Loaded *out, Finding *f, Error *err)
{
    const char *names[PLAN_MAX_STEPS];
    CompileResult code;
    for (int i = 0; i < c->plan.n_kernels; i++) names[i] = c->plan.kernels[i];
    CompileRequest request = {evaluator_device(e)->arch, c->source, c->len, c->plan.n_kernels, names};
    int rc = compiler_run(e->compiler, &request, &code, err);
    if (!rc && !code.ok && code.bad_name >= 0 && !code.line) {
        int line = c->plan.kernel_line[code.bad_name];
        finding_set(f, OUTCOME_PLAN_ERROR, line, "line %d: %s", line, code.message);
        rc = 1;
    } else if (!rc && !code.ok) {
        finding_set(f, OUTCOME_COMPILE_ERROR, code.line, "%s", code.message);
        rc = 1;
    }
    if (rc) {
        compile_result_release(&code);
        return rc;
    }
    return loaded_open(out, e->ops, e->device, t, &c->plan, &code, f, err);
}

static const Workload *timed_workload(const Evaluator *e, const Task *t, Error *err)
{
    Role role = evaluator_device(e)->predicted ? ROLE_SIM : ROLE_TIME;
    for (int i = 0; i < t->n_workloads; i++)
        if (t->workloads[i].role == role) return &t->workloads[i];
    error_set(err, "task %s has no workload of role \"%s\"", t->name, role == ROLE_SIM ? "sim" : "time");
    return NULL;
}

/* A finding about the baseline is the task's fault, never the candidate's. */
static int baseline_broken(const Task *t, const Finding *f, Error *err)
{
    return error_set(err, "the baseline of task %s fails: %s: %.600s", t->name, outcome_name(f->outcome), f->message);
}

static int prepare_baseline(Evaluator *e, Task *t, const Workload *w, Baseline *b, Error *err)
{
    Outcome outcome;
    Finding f;
    ChecksPassed passed = {0};
    int line, rc;
    if (candidate_parse(t->baseline_source, strlen(t->baseline_source), &b->candidate, &outcome, &line, err))
        return error_prefix(err, "the baseline of task %s", t->name);
    rc = compile_and_load(e, t, &b->candidate, &b->loaded, &f, err);
    if (!rc) rc = checks_plan(&b->loaded, w, &f);
    if (!rc && evaluator_device(e)->predicted) {
        DeviceTiming *timing = memory_alloc(sizeof *timing);
        rc = timing_measure(NULL, &b->loaded, e->cases, w, e->seed, TIMING_BUDGET_S, timing, &passed, &f, err);
        if (!rc) b->us = timing->candidate_us[0];
        b->n_counters = timing->n_counters;
        memcpy(b->counters, timing->counters, sizeof b->counters);
        free(timing);
        loaded_close(&b->loaded);
    }
    if (rc > 0) rc = baseline_broken(t, &f, err);
    if (!rc) b->ready = 1;
    return rc;
}

static int find_baseline(Evaluator *e, Task *t, const Workload *w, Baseline **out, Error *err)
{
    int i = 0;
    while (e->tasks.tasks[i] != t) i++;
    Baseline *b = *out = &e->baselines[i];
    if (b->ready) return 0;
    int rc = prepare_baseline(e, t, w, b, err);
    if (!rc) return 0;
    loaded_close(&b->loaded);
    candidate_release(&b->candidate);
    return rc;
}

/* From samples to numbers; a time that physics does not allow is a finding. */
static int score(Evaluator *e, Task *t, const Workload *w, Verdict *v, Finding *f, Error *err)
{
    Interval ratio;
    const DeviceTiming *m = v->timing;
    if (timing_light_us(t, w, evaluator_device(e), &v->light_us, err)) return -1;
    v->time_us = statistics_median(m->candidate_us, m->n);
    v->baseline_us = statistics_median(m->baseline_us, m->n);
    statistics_ratio(m->baseline_us, m->candidate_us, m->n, e->seed, &ratio);
    v->speedup = ratio.median;
    v->low = ratio.low;
    v->high = ratio.high;
    if (v->time_us >= v->light_us) return 0;
    finding_set(f, OUTCOME_CHEAT, 0, "%.3f us is less than the %.3f us that the task's bytes and flops take on this device",
                v->time_us, v->light_us);
    snprintf(f->cheat, sizeof f->cheat, "faster_than_light");
    return 1;
}

static int time_candidate(Evaluator *e, Task *t, const Workload *w, Loaded *l, Verdict *v, ChecksPassed *passed, Finding *f,
                          Error *err)
{
    Baseline *b;
    if (find_baseline(e, t, w, &b, err)) return -1;
    int predicted = evaluator_device(e)->predicted;
    v->timing = memory_alloc(sizeof *v->timing);
    int rc = timing_measure(predicted ? NULL : &b->loaded, l, e->cases, w, e->seed, TIMING_BUDGET_S, v->timing, passed, f, err);
    if (rc) return rc;
    if (predicted) {
        v->timing->baseline_us[0] = b->us;
        v->timing->n_baseline_counters = b->n_counters;
        memcpy(v->timing->baseline_counters, b->counters, sizeof b->counters);
    }
    return score(e, t, w, v, f, err);
}

/* Milliseconds since *since, which moves on. */
static double lap(double *since)
{
    double now = clock_seconds(), ms = (now - *since) * 1e3;
    *since = now;
    return ms;
}

static int judge(Evaluator *e, Task *t, const Candidate *c, Verdict *v, ChecksPassed *passed, Finding *f, Error *err)
{
    Loaded l = {0};
    double compile_ms = 0, checks_ms = 0, timing_ms = 0, since = clock_seconds();
    const Workload *w = timed_workload(e, t, err);
    if (!w) return -1;
    int rc = compile_and_load(e, t, c, &l, f, err);
    if (!rc) rc = checks_plan(&l, w, f);
    compile_ms = lap(&since);
    if (!rc) v->registers = l.registers;
    if (!rc) rc = checks_run(&l, e->cases, e->seed, passed, f, err);
    /* What a device variable has kept of the checks would be work that the timed run does not do. */
    if (!rc) rc = loaded_again(&l, f, err);
    checks_ms = lap(&since);
    if (!rc) rc = time_candidate(e, t, w, &l, v, passed, f, err);
    timing_ms = lap(&since);
    loaded_close(&l);
    log_debug("%s: compile and load %.0f ms, checks %.0f ms, timing %.0f ms", t->name, compile_ms, checks_ms, timing_ms);
    return rc;
}

static void conclude(Verdict *v, int rc, const ChecksPassed *passed, const Finding *f, const Error *err)
{
    v->n_checks = passed->n;
    memcpy(v->checks, passed->text, sizeof v->checks);
    if (rc == 0) {
        v->outcome = OUTCOME_OK;
        v->score = statistics_towards_one(v->low);
        return;
    }
    verdict_release(v);
    v->speedup = v->low = v->high = v->time_us = v->baseline_us = 0;
    v->outcome = rc > 0 ? f->outcome : OUTCOME_EVALUATOR_ERROR;
    v->line = rc > 0 ? f->line : 0;
    snprintf(v->cheat, sizeof v->cheat, "%s", rc > 0 ? f->cheat : "");
    snprintf(v->message, sizeof v->message, "%s", rc > 0 ? f->message : err->text);
}

void evaluator_run(Evaluator *e, const char *task, const char *source, size_t len, Verdict *out)
{
    Candidate c;
    Finding f = {.outcome = OUTCOME_EVALUATOR_ERROR};
    ChecksPassed passed = {0};
    Error err = {""};
    const DeviceInfo *d = evaluator_device(e);
    memset(out, 0, sizeof *out);
    snprintf(out->device, sizeof out->device, "%s", d->device_class);
    out->seed = e->seed;
    out->predicted = d->predicted;
    const char *compiler = compiler_version(e->compiler, &err);
    Task *t = taskset_find(&e->tasks, task, strlen(task));
    if (!compiler || !t) {
        if (!t) error_set(&err, "no task is named \"%s\"", task);
        conclude(out, -1, &passed, &f, &err);
        return;
    }
    snprintf(out->compiler, sizeof out->compiler, "%s", compiler);
    memcpy(out->task_digest, t->digest, DIGEST_HEX);
    evaluator_job_key(source, len, t->digest, d->device_class, e->seed, out->key);
    Outcome outcome;
    int line, rc = candidate_parse(source, len, &c, &outcome, &line, &err);
    memcpy(out->source_digest, c.digest, DIGEST_HEX);
    if (rc) {
        finding_set(&f, outcome, line, "%s", err.text);
        rc = 1;
    } else {
        rc = judge(e, t, &c, out, &passed, &f, &err);
    }
    conclude(out, rc, &passed, &f, &err);
    candidate_release(&c);
}
