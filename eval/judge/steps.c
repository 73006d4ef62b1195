/* The table of the steps. Those that compile and load are here; the others are in the files that the
 * includes name. */
#include "eval/judge/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/judge/branches.h"
#include "eval/judge/checks.h"
#include "eval/judge/errors.h"
#include "eval/judge/loaded_ops.h"
#include "eval/judge/outliers.h"
#include "eval/judge/paired_timing.h"
#include "eval/judge/predicted_timing.h"
#include "eval/judge/sanitizer.h"
#include "eval/judge/wide_checks.h"
#include "eval/judge/workloads.h"
#include "eval/sim/time/occupancy.h"

/* The kernels of more op lines may be too many for a compilation with one more workload. */
static const int few_ops = 64;

static int step_plan(Judgement *j)
{
    Candidate *c = &j->candidate;
    int rc = candidate_parse(j->source, j->len, j->trusted, c, &j->fault);
    memcpy(j->verdict.source_digest, c->digest, DIGEST_HEX);
    return rc;
}

static int step_compile(Judgement *j)
{
    Verdict *v = &j->verdict;
    loaded_init(&j->loaded, &j->evaluator->machine, j->task, j->trusted);
    int rc = loaded_compile(&j->loaded, &j->candidate, &j->fault);
    size_t n = strlen(v->compiler);
    v->compile_cpu_s = j->loaded.compile_cpu_s;
    if (*j->loaded.library)
        snprintf(v->compiler + n, sizeof v->compiler - n, ", %s", j->loaded.library);
    return rc;
}

/* The kernels of the plan's op lines for every workload that will run, with one compilation. */
static int compile_ops(Judgement *j)
{
    const Workload *list[TASK_MAX_WORKLOADS + 2 * TASK_MAX_TIMED];
    const Plan *plan = &j->candidate.plan;
    int n = 0;
    for (int i = 0; i < j->task->n_workloads; i++) {
        const Workload *w = &j->task->workloads[i];
        if (w == task_workload(j->task, ROLE_TIME) && j->pairs[0].timed == j->task->own)
            w = j->task->own;
        if (w->role != ROLE_SIM || judgement_is_predicted(j)) list[n++] = w;
    }
    for (int i = 0; i < j->n_pairs; i++) {
        workloads_take(j, i);
        if (judgement_is_predicted(j)) list[n++] = j->small; /* it may be another than the task's */
        if (plan->n_ops && plan->n_ops <= few_ops && (list[n] = predicted_shortened(j))) n++;
    }
    workloads_take(j, 0);
    return loaded_ops_compile(&j->loaded, list, n, &j->fault);
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
static void describe_launches(Judgement *j)
{
    Loaded *l = &j->loaded;
    Verdict *v = &j->verdict;
    Fault unused;
    DeviceLaunch *launches = NULL;
    int n = 0;
    v->registers = l->registers;
    for (int i = 0; i < l->plan->n_kernels; i++)
        if (l->kernels[i].info.local_bytes > v->local_bytes)
            v->local_bytes = l->kernels[i].info.local_bytes;
    if (loaded_ops_at(l, j->timed, &unused) ||
        plan_resolve(&l->context, j->timed, NULL, &launches, &n, &unused))
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

static int resolve_pair(Judgement *j, int i)
{
    Fault *f = &j->fault;
    workloads_take(j, i);
    int rc = checks_plan(&j->loaded, j->timed, f);
    if (!rc && judgement_is_predicted(j)) rc = branches_small(j);
    if (!rc && judgement_is_predicted(j)) rc = checks_plan(&j->loaded, j->small, f);
    j->pairs[i].small = j->small;
    return rc;
}

/* The plan, before anything runs. */
static int step_resolve(Judgement *j)
{
    int rc = 0;
    for (int i = 0; i < j->n_pairs && !rc; i++) rc = resolve_pair(j, i);
    workloads_take(j, 0);
    if (!rc) rc = compile_ops(j);
    if (!rc) describe_launches(j);
    return rc;
}

static int step_unseen(Judgement *j)
{
    return judgement_is_predicted(j) ? predicted_unseen(j) : paired_unseen(j);
}

/* clang-format off */
const JudgementStep judgement_steps[] = {
    {"plan",       step_plan,       ALWAYS},           /* the directives are parsed */
    {"compile",    step_compile,    ALWAYS},           /* to PTX and cubin, which the device loads */
    {"sizes",      step_sizes,      CLOCK | RUNS},     /* the module's own, where the baseline runs there */
    {"resolve",    step_resolve,    ALWAYS},           /* the plan against the kernels, at every workload */
    {"budget",     step_budget,     RUNS},             /* the baseline's error, where one is given */
    {"check",      step_check,      RUNS},             /* check workloads, up to the largest one */
    {"repeat",     step_repeat,     RUNS},             /* the largest again, and on other inputs */
    {"variants",   step_variants,   RUNS},             /* the largest on special values */
    {"check rest", step_check_rest, RUNS},             /* check workloads behind the largest one */
    {"wide",       step_wide,       RUNS},             /* drawn sizes, wide along each axis in turn */
    {"predict",    step_predict,    SIMULATOR | RUNS | EACH}, /* the time, from a sample of blocks */
    {"time",       step_time,       CLOCK | RUNS | EACH}, /* the time, in pairs with the baseline */
    {"floor",      judgement_floor, RUNS | EACH},      /* no time below the least that the work takes */
    {"unseen",     step_unseen,     WIN | RUNS | EACH}, /* new contents, and the time on them */
    {"outliers",   step_outliers,   WIN | RUNS | EACH}, /* contents that decide long sums */
    {"error",      step_error,      RUNS},             /* beside eager's, and the budget */
    {"sanitize",   step_sanitize,   CLOCK | SANITIZED | RUNS}, /* a simulator checks every access */
};
/* clang-format on */
const int judgement_n_steps = sizeof judgement_steps / sizeof *judgement_steps;

int judgement_step_applies(const Judgement *j, const JudgementStep *s)
{
    int predicted = judgement_is_predicted(j), win = judgement_is_win(j);
    return (!(s->when & SIMULATOR) || predicted) && (!(s->when & CLOCK) || !predicted) &&
           (!(s->when & WIN) || win) &&
           (!(s->when & SANITIZED) || win || j->evaluator->sanitize_all);
}
