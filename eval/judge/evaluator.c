/* The evaluator's opening and closing, its tasks, and the loop over the steps of a judgement (steps.h). */
#include "eval/judge/evaluator.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "eval/judge/baseline.h"
#include "eval/judge/checks.h"
#include "eval/judge/device_reference.h"
#include "eval/judge/sanitizer.h"
#include "eval/judge/steps.h"
#include "eval/judge/workloads.h"

static const double default_budget_s = 5;
/* Bounds of the cases that are kept for the next candidate, in host memory or on the device: those of a task
 * take up to 9 GB, and several evaluators share a GPU (2026-11-30: four had 100 GB with 16 each). */
static const size_t host_bytes = (size_t)1 << 30, device_bytes = (size_t)12 << 30;

/* ---- opening and closing ---- */

static int read_baseline(Evaluator *e, const char *path, Error *err)
{
    Buffer b;
    buffer_init(&b, CANDIDATE_MAX_SOURCE + 1);
    int rc = file_read_source(path, CANDIDATE_MAX_SOURCE, &b, err);
    if (!rc) e->baseline_source = memory_strndup((const char *)b.data, b.len);
    buffer_release(&b);
    return rc;
}

/* Tensors come and go with each candidate, and to map their pages again takes longer than to draw
 * what is in them. */
static void keep_freed_memory(void)
{
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
}

/* The folder of the cache; NULL: none. */
static const char *cache_of(const EvaluatorOptions *opt)
{
    const char *dir = opt->cache_dir ? opt->cache_dir : getenv("QUERN_CACHE");
    return dir && *dir ? dir : NULL;
}

/* The compiler starts while the device opens. */
static int open_parts(Evaluator *e, const EvaluatorOptions *opt, Error *err)
{
    Machine *m = &e->machine;
    const char *arg;
    const CompilerOptions compiler = {.cache_dir = cache_of(opt)};
    m->ops = device_find(opt->device, &arg, err);
    if (!m->ops || compiler_open(&compiler, &m->compiler, err)) return -1;
    if (taskset_load(opt->tasks_root, opt->tasks, &e->tasks, err)) return -1;
    e->baselines = memory_array((size_t)e->tasks.n + 1, sizeof *e->baselines);
    if (opt->baseline && read_baseline(e, opt->baseline, err)) return -1;
    log_debug("compiler started, %d tasks loaded", e->tasks.n);
    if (m->ops->open(arg, &m->device, err)) return -1;
    log_debug("device open");
    return 0;
}

int evaluator_open(const EvaluatorOptions *opt, Evaluator **out, Error *err)
{
    Evaluator *e = memory_alloc(sizeof *e);
    Machine *m = &e->machine;
    keep_freed_memory();
    e->seed = opt->seed;
    e->tasks_root = opt->tasks_root ? memory_strdup(opt->tasks_root) : NULL;
    e->clock = (ClockOptions){.mode = opt->mode,
                              .budget_s = opt->budget_s > 0 ? opt->budget_s : default_budget_s,
                              .seed = opt->seed,
                              .profile = opt->profile};
    if (open_parts(e, opt, err)) {
        evaluator_close(e);
        return -1;
    }
    e->cases = cases_new(m->ops->golden ? device_bytes : host_bytes, m->ops, m->device);
    if (cache_of(opt))
        cases_store(e->cases, e->stored = cache_open(cache_of(opt), CACHE_FOLDER_BYTES));
    if (!evaluator_device(e)->predicted) {
        e->sanitizer = sanitizer_new(evaluator_device(e)->arch);
        cases_reference(e->cases, device_reference_case, m);
    }
    *out = e;
    return 0;
}

void evaluator_close(Evaluator *e)
{
    Machine *m = &e->machine;
    for (int i = 0; e->baselines && i < e->tasks.n; i++) baselines_free(e->baselines[i]);
    free(e->baselines);
    free(e->baseline_source);
    sanitizer_free(e->sanitizer);
    if (e->cases) cases_free(e->cases); /* before the device, which may keep them */
    if (e->stored) cache_close(e->stored);
    if (m->compiler) compiler_close(m->compiler);
    if (m->device) m->ops->close(m->device);
    taskset_release(&e->tasks);
    free(e->tasks_root);
    free(e);
}

const DeviceInfo *evaluator_device(const Evaluator *e)
{
    return e->machine.ops->info(e->machine.device);
}

/* ---- tasks ---- */

/* A task that is named for the first time is loaded. */
static Task *find_task(Evaluator *e, const char *name, Error *err)
{
    int before = e->tasks.n, i = taskset_need(&e->tasks, e->tasks_root, name, err);
    if (i >= before) {
        e->baselines = memory_grow(e->baselines, (size_t)e->tasks.n, sizeof *e->baselines);
        e->baselines[i] = NULL;
    }
    return i < 0 ? NULL : e->tasks.tasks[i];
}

const Task *evaluator_task(Evaluator *e, const char *name, Error *err)
{
    return find_task(e, name, err);
}

const TaskSet *evaluator_tasks(const Evaluator *e)
{
    return &e->tasks;
}

void evaluator_reseed(Evaluator *e, uint64_t seed)
{
    if (seed == e->seed) return;
    e->seed = e->clock.seed = seed;
    for (int i = 0; i < e->tasks.n; i++) {
        baselines_free(e->baselines[i]);
        e->baselines[i] = NULL;
    }
}

void evaluator_sanitize_all(Evaluator *e, int on)
{
    e->sanitize_all = on;
}

const char *evaluator_compiler(Evaluator *e, Error *err)
{
    return compiler_version(e->machine.compiler, err);
}

void evaluator_offer(Evaluator *e, const char *key, const void *reply, size_t len)
{
    compiler_offer(e->machine.compiler, key, reply, len);
}

/* ---- a judgement ---- */

/* The functions of a device whose processes of libraries serve several candidates; NULL: j needs none. */
static const DeviceClockOps *libraries_of(const Judgement *j)
{
    const DeviceClockOps *clock = j->evaluator->machine.ops->clock;
    return clock && clock->shared && j->loaded.home == HOME_LIBRARY ? clock : NULL;
}

static int run_step(Judgement *j, const JudgementStep *s, int again)
{
    if ((again && !(s->when & RUNS)) || !judgement_step_applies(j, s)) return 0;
    double start = clock_seconds();
    int rc = s->run(j);
    const DeviceClockOps *libraries = libraries_of(j);
    if (libraries && libraries->shared(j->evaluator->machine.device)) j->shared = 1;
    double ms = (clock_seconds() - start) * 1e3;
    verdict_spend(&j->verdict, s->name, ms);
    log_debug("%s: %s %.1f ms%s", j->task->name, s->name, ms,
              !rc      ? ""
              : rc > 0 ? ": the candidate is at fault"
                       : ": the evaluator failed");
    return rc;
}

/* The steps from number i on that run for each timed workload. *end: the first other one. */
static int run_each(Judgement *j, int i, int again, int *end)
{
    int rc = 0;
    for (*end = i; *end < judgement_n_steps && judgement_steps[*end].when & EACH;) ++*end;
    for (int k = 0; k < j->n_pairs && !rc; k++) {
        workloads_take(j, k);
        for (int s = i; s < *end && !rc; s++) rc = run_step(j, &judgement_steps[s], again);
        if (!rc) workloads_note(j, k);
    }
    if (!rc) workloads_mean(j);
    return rc;
}

/* Run the steps that apply, until one fails. again: only those that run the candidate's code. */
static int run_steps(Judgement *j, int again)
{
    int rc = 0;
    for (int i = 0, next; i < judgement_n_steps && !rc; i = next) {
        next = i + 1;
        rc = judgement_steps[i].when & EACH ? run_each(j, i, again, &next)
                                            : run_step(j, &judgement_steps[i], again);
    }
    run_close(&j->largest);
    return rc;
}

/* All that its steps have found so far, and at which timed workload they stopped. */
static void forget(Judgement *j)
{
    workloads_take(j, 0);
    Verdict *v = &j->verdict;
    v->second_seed = 0;
    v->low = 0;
    v->n_checks = 0;
    v->n_rows = 0;
    j->errors.known = 0;
}

/* After a fault that may not matter: run again, with code that follows doubtful values. Where a use
 * of such a value stays a fault, the first fault is the verdict; where a race is found instead, that is. */
static int run_following(Judgement *j)
{
    int follows = loaded_follow(&j->loaded, &j->fault.error);
    if (follows < 1) return follows < 0 ? -1 : 1;
    Verdict *v = &j->verdict, *first = memory_alloc(sizeof *first);
    const Fault found = j->fault;
    verdict_release(v);
    *first = *v;
    forget(j);
    int rc = run_steps(j, 1);
    if (!rc) checks_warn(j);
    int is_other = j->fault.outcome == OUTCOME_RACE && found.outcome != OUTCOME_RACE;
    if (rc == 1 && follows == DEVICE_FOLLOWS_USES && !is_other) {
        verdict_release(v);
        *v = *first;
        j->fault = found;
    }
    free(first);
    return rc;
}

/* Nothing is kept: what the failure left may be loaded in part. */
static void begin_anew(Judgement *j)
{
    Verdict *v = &j->verdict;
    const char *compiler = evaluator_compiler(j->evaluator, NULL);
    loaded_unfollow(&j->loaded);
    loaded_close(&j->loaded);
    candidate_release(&j->candidate);
    j->fault = (Fault){.outcome = OUTCOME_EVALUATOR_ERROR};
    j->shared = 0;
    verdict_release(v);
    forget(j);
    if (compiler) snprintf(v->compiler, sizeof v->compiler, "%s", compiler);
}

/* A candidate that failed beside libraries which others have used is judged again where nobody was before, so
 * that none is blamed for what another has left there. Nobody gets a process of one that failed. */
static int run_apart(Judgement *j, int rc)
{
    const DeviceClockOps *libraries = libraries_of(j);
    Device *device = j->evaluator->machine.device;
    Fault *f = &j->fault;
    int of_source =
        rc > 0 && (f->outcome == OUTCOME_COMPILE_ERROR || f->outcome == OUTCOME_PLAN_ERROR);
    if (!rc || !libraries) return rc;
    if (j->shared && !of_source) {
        log_debug("%s: %s; again in a process of its own", j->task->name,
                  rc > 0 ? f->message : f->error.text);
        begin_anew(j);
        rc = libraries->renew(device, 1, &f->error) ? -1 : run_steps(j, 0);
    }
    if (rc) libraries->renew(device, 0, NULL);
    return rc;
}

/* After an abnormal end: check that the GPU still computes. If not, the verdict is an evaluator's
 * error. */
static int check_device(Judgement *j, int rc)
{
    const Machine *m = &j->evaluator->machine;
    Outcome o = j->fault.outcome;
    int abnormal = rc < 0 || (rc > 0 && (o == OUTCOME_LAUNCH_ERROR || o == OUTCOME_TIMEOUT ||
                                         o == OUTCOME_OUT_OF_BOUNDS));
    Error sick;
    if (!abnormal || !m->ops->clock || !m->ops->clock->canary(m->device, &sick)) return rc;
    j->fault.error = sick;
    return -1;
}

void evaluator_judge(Evaluator *e, const char *task, const char *source, size_t len, Judgement *j)
{
    Error err = {0};
    const char *compiler = evaluator_compiler(e, &err);
    Task *t = compiler ? find_task(e, task, &err) : NULL;
    const DeviceClockOps *clock = e->machine.ops->clock;
    if (clock && clock->next) clock->next(e->machine.device);
    judgement_begin(j, e, t, source, len);
    if (!t) {
        j->fault.error = err;
        judgement_conclude(j, -1);
        return;
    }
    snprintf(j->verdict.compiler, sizeof j->verdict.compiler, "%s", compiler);
    int rc = run_steps(j, 0);
    if (rc == 1) rc = run_following(j);
    rc = run_apart(j, rc);
    loaded_unfollow(&j->loaded);
    judgement_conclude(j, check_device(j, rc));
}

void evaluator_run(Evaluator *e, const char *task, const char *source, size_t len, Verdict *out)
{
    Judgement *j = memory_alloc(sizeof *j);
    evaluator_judge(e, task, source, len, j);
    *out = j->verdict;
    j->verdict.timing = NULL; /* it is the caller's now */
    judgement_release(j);
    free(j);
}
