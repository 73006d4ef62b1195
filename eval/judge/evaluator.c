/* The steps of a verdict in their order, and what lasts from one candidate to the next: device,
 * compiler, tasks, baselines, cases. */
#include "eval/judge/evaluator.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "eval/candidate/host_code.h"
#include "eval/candidate/undefined_name.h"
#include "eval/judge/baseline.h"
#include "eval/judge/device_reference.h"
#include "eval/judge/loaded_ops.h"
#include "eval/judge/outliers.h"
#include "eval/judge/paired_timing.h"
#include "eval/judge/predicted_timing.h"
#include "eval/judge/sanitizer.h"
#include "eval/judge/seeds.h"
#include "eval/judge/statistics.h"
#include "eval/judge/timing_bounds.h"
#include "eval/sim/time/occupancy.h"

static const double default_budget_s = 5;
/* Bounds of the cases that are kept for the next candidate, in host memory or on the device. */
static const size_t host_bytes = (size_t)1 << 30, device_bytes = (size_t)22 << 30;
/* The kernels of more op lines may be too many for a compilation with one more workload. */
static const int few_ops = 64;

struct Evaluator {
    const DeviceOps *ops;
    Device *device;
    TaskSet tasks;         /* those in no set, and each other one from when it is first named */
    char *tasks_root;      /* NULL: the default */
    Baseline **baselines;  /* by index of the task, each at one place: its parts point to it */
    char *baseline_source; /* replaces the tasks' baselines; NULL: none */
    Compiler *compiler;
    Cases *cases;
    Sanitizer *sanitizer; /* of a device that measures; NULL: no simulator has its architecture */
    int sanitize_all;     /* not only wins */
    PairedOptions paired;
    ReferenceDevice reference;
    uint64_t seed;
};

static int read_baseline(Evaluator *e, const char *path, Error *err)
{
    Buffer b;
    buffer_init(&b, CANDIDATE_MAX_SOURCE + 1);
    int rc = file_read_source(path, CANDIDATE_MAX_SOURCE, &b, err);
    if (!rc) e->baseline_source = memory_strndup((const char *)b.data, b.len);
    buffer_release(&b);
    return rc;
}

/* A task that is named for the first time is loaded. */
static Task *find_task(Evaluator *e, const char *name, Error *err)
{
    int before = e->tasks.n, i = taskset_need(&e->tasks, e->tasks_root, name, err);
    if (i >= before) {
        e->baselines = memory_grow(e->baselines, (size_t)e->tasks.n, sizeof *e->baselines);
        e->baselines[i] = memory_array(1, sizeof **e->baselines);
    }
    return i < 0 ? NULL : e->tasks.tasks[i];
}

/* Tensors come and go with each candidate, and to map their pages again takes longer than to draw
 * what is in them. */
static void keep_freed_memory(void)
{
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
}

int evaluator_open(const EvaluatorOptions *opt, Evaluator **out, Error *err)
{
    Evaluator *e = memory_alloc(sizeof *e);
    const char *arg, *cache = opt->cache_dir ? opt->cache_dir : getenv("QUERN_CACHE");
    keep_freed_memory();
    e->seed = opt->seed;
    e->tasks_root = opt->tasks_root ? memory_strdup(opt->tasks_root) : NULL;
    e->paired = (PairedOptions){opt->mode, opt->budget_s > 0 ? opt->budget_s : default_budget_s,
                                opt->seed, opt->profile};
    e->ops = device_find(opt->device, &arg, err);
    if (!e->ops ||
        compiler_open(&(CompilerOptions){.cache_dir = cache && *cache ? cache : NULL}, &e->compiler,
                      err) ||
        taskset_load(opt->tasks_root, NULL, &e->tasks, err) ||
        (opt->baseline && read_baseline(e, opt->baseline, err))) {
        evaluator_close(e);
        return -1;
    }
    e->baselines = memory_array((size_t)e->tasks.n + 1, sizeof *e->baselines);
    for (int i = 0; i < e->tasks.n; i++) e->baselines[i] = memory_array(1, sizeof **e->baselines);
    log_debug("compiler started, %d tasks loaded", e->tasks.n);
    if (e->ops->open(arg, &e->device, err)) {
        evaluator_close(e);
        return -1;
    }
    log_debug("device open");
    e->cases = cases_new(e->ops->golden ? device_bytes : host_bytes, e->ops, e->device);
    if (!evaluator_device(e)->predicted) e->sanitizer = sanitizer_new(evaluator_device(e)->arch);
    e->reference = (ReferenceDevice){.ops = e->ops, .device = e->device, .compiler = e->compiler};
    if (!e->ops->info(e->device)->predicted)
        cases_reference(e->cases, device_reference_case, &e->reference);
    *out = e;
    return 0;
}

void evaluator_close(Evaluator *e)
{
    for (int i = 0; e->baselines && i < e->tasks.n; i++) {
        baseline_release(e->baselines[i]);
        free(e->baselines[i]);
    }
    free(e->baselines);
    free(e->baseline_source);
    sanitizer_free(e->sanitizer);
    if (e->cases) cases_free(e->cases); /* before the device, which may keep them */
    if (e->compiler) compiler_close(e->compiler);
    if (e->device) e->ops->close(e->device);
    taskset_release(&e->tasks);
    free(e->tasks_root);
    free(e);
}

const DeviceInfo *evaluator_device(const Evaluator *e)
{
    return e->ops->info(e->device);
}

const Task *evaluator_task(Evaluator *e, const char *name, Error *err)
{
    return find_task(e, name, err);
}

const TaskSet *evaluator_tasks(const Evaluator *e)
{
    return &e->tasks;
}

static BaselineContext baseline_context(Evaluator *e)
{
    return (BaselineContext){e->ops, e->device, e->compiler, e->cases, e->seed, e->baseline_source};
}

static int find_baseline(Evaluator *e, Task *t, const Workload *w, Baseline **out, Error *err)
{
    int i = 0;
    while (e->tasks.tasks[i] != t) i++;
    BaselineContext x = baseline_context(e);
    *out = e->baselines[i];
    return (*out)->ready ? 0 : baseline_prepare(&x, t, w, *out, err);
}

/* Fill the verdict's times and ratio from the samples. A time below timing_floor_us is a cheat. */
static int score(Evaluator *e, Task *t, const Workload *w, Verdict *v, Finding *f, Error *err)
{
    Interval ratio;
    const DeviceTiming *m = v->timing;
    if (timing_light_us(t, w, evaluator_device(e), &v->light_us, &v->light_is_flops, err))
        return -1;
    v->time_us = statistics_median(m->candidate_us, m->n);
    v->baseline_us = statistics_median(m->baseline_us, m->n);
    if (evaluator_device(e)->predicted) {
        Pairs one = timing_pairs(m);
        statistics_ratio(&one, e->seed, &ratio);
    } else {
        paired_ratio(m, e->seed, &ratio);
    }
    v->speedup = ratio.middle;
    v->low = ratio.low;
    v->high = ratio.high;
    /* Take the time by the ratio, too: when runs differ widely, the median time and the ratio come
     * from different runs. */
    double floor_us, time_us = fmin(v->time_us, v->baseline_us / v->speedup);
    if (timing_floor_us(t, w, evaluator_device(e), m->mode, &floor_us, err)) return -1;
    if (time_us >= floor_us) return 0;
    finding_set(
        f, OUTCOME_CHEAT, 0,
        "%.3f us is less than the %.3f us that the task's bytes and flops take on this device",
        time_us, floor_us);
    snprintf(f->cheat, sizeof f->cheat, "faster_than_light");
    return 1;
}

/* The device is idle meanwhile, and may serve other processes. */
static int sanitize(Evaluator *e, Loaded *l, ChecksPassed *passed, Finding *f, Error *err)
{
    if (e->sanitizer) return sanitizer_check(e->sanitizer, l, e->compiler, e->seed, passed, f, err);
    checks_pass(passed, "no simulator could check it: none has %s", evaluator_device(e)->arch);
    return 0;
}

static int with_outliers(Evaluator *e, const Workload *w, Baseline *b, Loaded *l, const Verdict *v,
                         ChecksPassed *passed, Finding *f, Error *err)
{
    BaselineContext x = baseline_context(e);
    const Workload *fewer = predicted_fitting(l, e->cases, w, e->seed);
    return outliers_check(&x, b, l, w, fewer, v->timing, v->low, passed, f, err);
}

/* Time a win again on contents of its second seed. The lower interval stays in *v. */
static int measured_again(Evaluator *e, Task *t, const Workload *w, Baseline *b, Loaded *l,
                          const PairedOptions *second, Verdict *v, ChecksPassed *passed, Finding *f,
                          Error *err)
{
    Verdict first = *v;
    v->timing = memory_alloc(sizeof *v->timing);
    int rc = paired_measure(&b->loaded, l, e->cases, w, second, v->timing, passed, f, err);
    if (!rc) rc = score(e, t, w, v, f, err);
    if (!rc && v->low > first.low) {
        free(v->timing);
        *v = first;
    } else {
        free(first.timing);
    }
    return rc;
}

/* The second seed is the same for all candidates, since the expected outputs of timed contents are
 * costly. */
static int measure(Evaluator *e, Task *t, const Workload *w, Baseline *b, Loaded *l, Verdict *v,
                   ChecksPassed *passed, Finding *f, Error *err)
{
    PairedOptions second = e->paired;
    int rc = paired_measure(&b->loaded, l, e->cases, w, &e->paired, v->timing, passed, f, err);
    e->paired.timed_at = second.timed_at = clock_seconds();
    if (!rc) rc = score(e, t, w, v, f, err);
    if (rc) return rc;
    if (v->low <= 1) return e->sanitize_all ? sanitize(e, l, passed, f, err) : 0;
    second.seed = v->second_seed = seed_derive(e->seed, "second", t->digest);
    rc = paired_unseen(&b->loaded, l, e->cases, w, &second, v->low, passed, f, err);
    if (!rc) rc = measured_again(e, t, w, b, l, &second, v, passed, f, err);
    if (!rc) rc = with_outliers(e, w, b, l, v, passed, f, err);
    if (!rc) rc = sanitize(e, l, passed, f, err);
    e->paired.timed_at = clock_seconds();
    return rc;
}

/* The second seed follows from the source, so that a source cannot hold what it gives: a
 * source that held it would have another seed. */
static int predict(Evaluator *e, Task *t, const Workload *w, Baseline *b, Loaded *l, Verdict *v,
                   ChecksPassed *passed, Finding *f, Error *err)
{
    const Workload *small = task_workload(t, ROLE_SIM);
    int rc = predicted_measure(l, e->cases, small, e->seed, v->timing, passed, f, err);
    if (!rc) rc = predicted_timed(l, e->cases, small, w, e->seed, v->timing, passed, f, err);
    if (rc) return rc;
    v->timing->baseline_us[0] = b->us;
    v->timing->n_baseline_counters = b->n_counters;
    memcpy(v->timing->baseline_counters, b->counters, sizeof b->counters);
    rc = score(e, t, w, v, f, err);
    if (rc || v->low <= 1) return rc;
    v->second_seed = seed_derive(e->seed, "second", v->source_digest);
    /* Load again: a sample of blocks may leave device variables in between. */
    rc = loaded_again(l, f, err);
    if (!rc)
        rc = predicted_unseen(l, e->cases, small, w, v->second_seed, v->timing, passed, f, err);
    if (!rc) rc = score(e, t, w, v, f, err);
    return rc || v->low <= 1 ? rc : with_outliers(e, w, b, l, v, passed, f, err);
}

static int time_candidate(Evaluator *e, Task *t, const Workload *w, Loaded *l, Verdict *v,
                          ChecksPassed *passed, Finding *f, Error *err)
{
    Baseline *b;
    if (find_baseline(e, t, w, &b, err)) return -1;
    log_debug("baseline ready");
    v->timing = memory_alloc(sizeof *v->timing);
    return evaluator_device(e)->predicted ? predict(e, t, w, b, l, v, passed, f, err)
                                          : measure(e, t, w, b, l, v, passed, f, err);
}

void evaluator_reseed(Evaluator *e, uint64_t seed)
{
    if (seed == e->seed) return;
    e->seed = e->paired.seed = seed;
    for (int i = 0; i < e->tasks.n; i++) baseline_release(e->baselines[i]);
}

void evaluator_sanitize_all(Evaluator *e, int on)
{
    e->sanitize_all = on;
}

const char *evaluator_compiler(Evaluator *e, Error *err)
{
    return compiler_version(e->compiler, err);
}

void evaluator_offer(Evaluator *e, const char *key, const void *reply, size_t len)
{
    compiler_offer(e->compiler, key, reply, len);
}

/* Returns the milliseconds since *since, and sets *since to now. */
static double lap(double *since)
{
    double now = clock_seconds(), ms = (now - *since) * 1e3;
    *since = now;
    return ms;
}

static void note_occupancy(const Loaded *l, const PlanKernel *k, const DeviceLaunch *launch,
                           size_t shared, Verdict *v)
{
    Occupancy o;
    uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
    if (occupancy_of_arch(l->ops->info(l->device)->arch, threads, k->info.registers, shared, &o))
        return;
    if (v->occupancy > 0 && v->occupancy <= o.occupancy) return;
    v->occupancy = o.occupancy;
    snprintf(v->occupancy_limit, sizeof v->occupancy_limit, "%s", o.limit);
}

/* Note the resources that the launches of the timed workload take of a multiprocessor. */
static void describe_launches(Loaded *l, const Workload *w, Verdict *v)
{
    Finding unused;
    DeviceLaunch *launches = NULL;
    int n = 0, line;
    Error ignored;
    v->registers = l->registers;
    for (int i = 0; i < l->plan->n_kernels; i++)
        if (l->kernels[i].info.local_bytes > v->local_bytes)
            v->local_bytes = l->kernels[i].info.local_bytes;
    if (loaded_ops_at(l, w, &unused) ||
        plan_resolve(&l->context, w, NULL, &launches, &n, &line, &ignored))
        return;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < l->plan->n_kernels; k++) {
            size_t shared = l->kernels[k].info.static_shared + launches[i].shared_bytes;
            if (launches[i].op || strcmp(l->kernels[k].lowered, launches[i].kernel)) continue;
            if (shared > v->shared_bytes) v->shared_bytes = shared;
            note_occupancy(l, &l->kernels[k], &launches[i], shared, v);
        }
    free(launches);
}

/* The kernels of the plan's op lines for every workload that will run, with one compilation. */
static int compile_ops(Evaluator *e, Loaded *l, Finding *f, Error *err)
{
    const Workload *list[TASK_MAX_WORKLOADS + 1];
    int n = 0;
    for (int i = 0; i < l->task->n_workloads; i++) {
        const Workload *w = &l->task->workloads[i];
        if (w->role != ROLE_SIM || evaluator_device(e)->predicted) list[n++] = w;
    }
    if (l->plan->n_ops && l->plan->n_ops <= few_ops &&
        (list[n] = predicted_shortened(l, e->cases, task_workload(l->task, ROLE_TIME), e->seed)))
        n++;
    return loaded_ops_compile(l, list, n, f, err);
}

/* Check and time what is loaded. ms: adds the milliseconds of both. */
static int judge_loaded(Evaluator *e, Task *t, Loaded *l, Verdict *v, ChecksPassed *passed,
                        Finding *f, double ms[2], Error *err)
{
    double since = clock_seconds();
    const Workload *w = task_workload(t, ROLE_TIME);
    int rc = checks_run(l, e->cases, e->seed, passed, f, err);
    /* A device variable must not keep the results of the checks for the timed runs. */
    if (!rc) rc = loaded_again(l, f, err);
    ms[0] += lap(&since);
    log_debug("checked");
    if (!rc) rc = time_candidate(e, t, w, l, v, passed, f, err);
    ms[1] += lap(&since);
    return rc;
}

/* After a fault that may not matter: judge again, with a module that follows doubtful values. */
static int judge_again(Evaluator *e, Task *t, Loaded *l, Verdict *v, ChecksPassed *passed,
                       Finding *f, double ms[2], Error *err)
{
    int follows = loaded_follow(l, err);
    if (follows < 1) return follows < 0 ? -1 : 1;
    verdict_release(v);
    const Verdict first = *v;
    const ChecksPassed had = *passed;
    const Finding found = *f;
    v->second_seed = 0;
    *passed = (ChecksPassed){0};
    int rc = judge_loaded(e, t, l, v, passed, f, ms, err);
    if (!rc) checks_warn(passed, l);
    loaded_unfollow(l);
    if (rc != 1 || follows != DEVICE_FOLLOWS_USES) return rc;
    verdict_release(v);
    *v = first;
    *passed = had;
    *f = found;
    return rc;
}

/* The plan, before anything runs. */
static int check_plan(Evaluator *e, Task *t, Loaded *l, Finding *f, Error *err)
{
    int rc = checks_plan(l, task_workload(t, ROLE_TIME), f);
    if (!rc && evaluator_device(e)->predicted) rc = checks_plan(l, task_workload(t, ROLE_SIM), f);
    return rc ? rc : compile_ops(e, l, f, err);
}

static int judge(Evaluator *e, Task *t, const Candidate *c, Verdict *v, ChecksPassed *passed,
                 Finding *f, Error *err)
{
    Loaded l = {0};
    double ms[2] = {0}, since = clock_seconds();
    int rc = loaded_compile(&l, e->ops, e->device, e->compiler, t, c, 0, f, err);
    if (!rc) rc = check_plan(e, t, &l, f, err);
    double compile_ms = lap(&since);
    if (!rc) {
        describe_launches(&l, task_workload(t, ROLE_TIME), v);
        log_debug("compiled and loaded");
        rc = judge_loaded(e, t, &l, v, passed, f, ms, err);
    }
    if (rc == 1) rc = judge_again(e, t, &l, v, passed, f, ms, err);
    loaded_unfollow(&l);
    loaded_close(&l);
    log_debug("%s: compile and load %.0f ms, checks %.0f ms, timing %.0f ms", t->name, compile_ms,
              ms[0], ms[1]);
    return rc;
}

/* After an abnormal end: check that the GPU still computes. If not, the verdict is an evaluator's
 * error. */
static int check_device(Evaluator *e, int rc, const Finding *f, Error *err)
{
    int abnormal =
        rc < 0 || (rc > 0 && (f->outcome == OUTCOME_LAUNCH_ERROR || f->outcome == OUTCOME_TIMEOUT ||
                              f->outcome == OUTCOME_OUT_OF_BOUNDS));
    Error sick;
    if (!abnormal || !e->ops->canary || !e->ops->canary(e->device, &sick)) return rc;
    *err = sick;
    return -1;
}

/* Put the variable's name into the message of an uninitialised value. */
static void name_variable(const char *source, size_t len, Finding *f)
{
    static const char unnamed[] = "a variable that has no value";
    char name[64], rest[sizeof f->message];
    char *at = f->outcome == OUTCOME_UNINITIALISED ? strstr(f->message, unnamed) : NULL;
    if (!at || !undefined_name(source, len, f->line, name, sizeof name)) return;
    snprintf(rest, sizeof rest, "%s", at + sizeof unnamed - 1);
    snprintf(at, sizeof f->message - (size_t)(at - f->message), "`%s`, which has no value%s", name,
             rest);
}

/* Adds to the message of a source that was refused that it has host code. */
static void name_host_code(const char *source, size_t len, Finding *f)
{
    char word[64];
    size_t used = strlen(f->message);
    if (f->outcome != OUTCOME_PLAN_ERROR && f->outcome != OUTCOME_COMPILE_ERROR) return;
    int line = host_code(source, len, word, sizeof word);
    if (!line || used + 256 > sizeof f->message) return;
    snprintf(
        f->message + used, sizeof f->message - used,
        "\n(line %d has host code, `%s`: remove all of it; the harness allocates, and launches "
        "by the //@ lines alone)",
        line, word);
}

static void conclude(Verdict *v, int rc, const ChecksPassed *passed, const Finding *f,
                     const Error *err)
{
    v->n_checks = passed->n;
    memcpy(v->checks, passed->text, sizeof v->checks);
    v->n_warnings = passed->n_warnings;
    memcpy(v->warnings, passed->warnings, sizeof v->warnings);
    if (rc == 0) {
        v->outcome = OUTCOME_OK;
        v->score = statistics_towards_one(v->low);
        return;
    }
    verdict_release(v);
    v->speedup = v->low = v->high = v->time_us = v->baseline_us = 0;
    v->outcome = rc > 0 ? f->outcome : OUTCOME_EVALUATOR_ERROR;
    v->error = rc > 0 ? ERROR_NONE : err->code;
    v->line = rc > 0 ? f->line : 0;
    snprintf(v->cheat, sizeof v->cheat, "%s", rc > 0 ? f->cheat : "");
    snprintf(v->message, sizeof v->message, "%s", rc > 0 ? f->message : err->text);
}

void evaluator_run(Evaluator *e, const char *task, const char *source, size_t len, Verdict *out)
{
    Candidate c;
    Finding f = {.outcome = OUTCOME_EVALUATOR_ERROR};
    ChecksPassed passed = {0};
    Error err = {0};
    const DeviceInfo *d = evaluator_device(e);
    memset(out, 0, sizeof *out);
    snprintf(out->device, sizeof out->device, "%s", d->device_class);
    snprintf(out->device_name, sizeof out->device_name, "%s", d->name);
    snprintf(out->driver, sizeof out->driver, "%s", d->driver);
    snprintf(out->uuid, sizeof out->uuid, "%s", d->uuid);
    out->seed = e->seed;
    out->predicted = d->predicted;
    out->error_factor = d->error_factor;
    const char *compiler = compiler_version(e->compiler, &err);
    Task *t = compiler ? find_task(e, task, &err) : NULL;
    if (!compiler || !t) {
        conclude(out, -1, &passed, &f, &err);
        return;
    }
    snprintf(out->compiler, sizeof out->compiler, "%s", compiler);
    memcpy(out->task_digest, t->digest, DIGEST_HEX);
    verdict_key(&(VerdictKey){.source = source,
                              .source_len = len,
                              .task_digest = t->digest,
                              .device_class = d->device_class,
                              .not_on = "",
                              .seed = e->seed,
                              .sanitize = e->sanitize_all},
                out->key);
    Outcome outcome;
    int line, rc = candidate_parse(source, len, &c, &outcome, &line, &err);
    memcpy(out->source_digest, c.digest, DIGEST_HEX);
    if (rc) {
        finding_set(&f, outcome, line, "%s", err.text);
        rc = 1;
    } else {
        rc = check_device(e, judge(e, t, &c, out, &passed, &f, &err), &f, &err);
    }
    if (rc > 0) name_variable(source, len, &f);
    if (rc > 0) name_host_code(source, len, &f);
    conclude(out, rc, &passed, &f, &err);
    candidate_release(&c);
}
