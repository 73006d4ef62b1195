/* The beginning and the end of a judgement: what a verdict says whatever the steps find, and how a
 * fault becomes its outcome. */
#include "eval/judge/judgement.h"
#include "eval/device/interval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/candidate/source_hints.h"
#include "eval/judge/paired_interval.h"
#include "eval/judge/statistics.h"
#include "eval/judge/timing_bounds.h"
#include "eval/judge/workloads.h"

void judgement_begin(Judgement *j, Evaluator *e, Task *t, const char *source, size_t len)
{
    const DeviceInfo *d = evaluator_device(e);
    Verdict *v = &j->verdict;
    *j = (Judgement){.evaluator = e, .task = t, .source = source, .len = len};
    j->fault.outcome = OUTCOME_EVALUATOR_ERROR;
    snprintf(v->device, sizeof v->device, "%s", d->device_class);
    snprintf(v->device_name, sizeof v->device_name, "%s", d->name);
    snprintf(v->driver, sizeof v->driver, "%s", d->driver);
    snprintf(v->uuid, sizeof v->uuid, "%s", d->uuid);
    v->seed = e->seed;
    v->predicted = d->predicted;
    v->error_factor = d->error_factor;
    if (!t) return;
    workloads_begin(j);
    memcpy(v->task_digest, t->digest, DIGEST_HEX);
    judgement_key(j);
}

void judgement_key(Judgement *j)
{
    const Evaluator *e = j->evaluator;
    j->verdict.left_own =
        !judgement_is_predicted(j) && j->task->own && cases_left_own(e->cases, j->task) != NULL;
    verdict_key(&(VerdictKey){.source = j->source,
                              .source_len = j->len,
                              .task_digest = j->task->digest,
                              .device_class = evaluator_device(e)->device_class,
                              .not_on = "",
                              .seed = e->seed,
                              .sanitize = e->sanitize_all,
                              .left_own = j->verdict.left_own},
                j->verdict.key);
}

/* Put the variable's name into the message of an uninitialised value. */
static void name_variable(const Judgement *j, Fault *f)
{
    static const char unnamed[] = "a variable that has no value";
    char name[64], rest[sizeof f->message];
    char *at = f->outcome == OUTCOME_UNINITIALISED ? strstr(f->message, unnamed) : NULL;
    if (!at || !undefined_name(j->source, j->len, f->line, name, sizeof name)) return;
    snprintf(rest, sizeof rest, "%s", at + sizeof unnamed - 1);
    snprintf(at, sizeof f->message - (size_t)(at - f->message), "`%s`, which has no value%s", name,
             rest);
}

/* Adds to the message of a source that was refused that it has host code. */
static void name_host_code(const Judgement *j, Fault *f)
{
    char word[64];
    size_t used = strlen(f->message);
    if (f->outcome != OUTCOME_PLAN_ERROR && f->outcome != OUTCOME_COMPILE_ERROR) return;
    int line = host_code(j->source, j->len, word, sizeof word);
    if (!line || used + 256 > sizeof f->message) return;
    snprintf(
        f->message + used, sizeof f->message - used,
        "\n(line %d has host code, `%s`: remove all of it; the harness allocates, and launches "
        "by the //@ lines alone)",
        line, word);
}

/* Adds to the message of a wrong result that integers of 8 bytes are read as shorter ones. */
static void name_wide_integers(const Judgement *j, Fault *f)
{
    char declaration[128];
    size_t used = strlen(f->message);
    if (f->outcome != OUTCOME_WRONG_RESULT && f->outcome != OUTCOME_OUT_OF_BOUNDS) return;
    int input =
        j->task ? wide_integers_narrowed(&j->candidate, j->task, declaration, sizeof declaration)
                : -1;
    if (input < 0 || used + 256 > sizeof f->message) return;
    snprintf(f->message + used, sizeof f->message - used,
             "\n(input %s has 8-byte integers, int64, and the kernel reads them as `%s`: declare a "
             "pointer to "
             "long long)",
             j->task->inputs[input].name, declaration);
}

void judgement_conclude(Judgement *j, int rc)
{
    Verdict *v = &j->verdict;
    Fault *f = &j->fault;
    if (rc == 0) {
        v->outcome = OUTCOME_OK;
        v->score = statistics_towards_one(v->low);
        return;
    }
    verdict_release(v);
    v->speedup = v->low = v->high = v->time_us = v->baseline_us = 0;
    v->n_rows = 0;
    if (rc < 0) {
        v->outcome = OUTCOME_EVALUATOR_ERROR;
        v->error = f->error.code;
        snprintf(v->message, sizeof v->message, "%s", f->error.text);
        return;
    }
    name_variable(j, f);
    name_host_code(j, f);
    name_wide_integers(j, f);
    v->outcome = f->outcome;
    v->line = f->line;
    snprintf(v->cheat, sizeof v->cheat, "%s", f->cheat);
    snprintf(v->message, sizeof v->message, "%s", f->message);
}

void judgement_release(Judgement *j)
{
    run_close(&j->largest);
    free(j->first_timing);
    loaded_unfollow(&j->loaded);
    loaded_close(&j->loaded);
    candidate_release(&j->candidate);
    verdict_release(&j->verdict);
}

int judgement_is_predicted(const Judgement *j)
{
    return evaluator_device(j->evaluator)->predicted;
}

int judgement_is_win(const Judgement *j)
{
    return j->verdict.low > 1;
}

const Case *judgement_draw(Judgement *j, const Contents *of)
{
    const Evaluator *e = j->evaluator;
    return cases_get(e->cases, j->task, of->w, of->v, case_seed(e->seed, j->task, of->w, of->trial),
                     of->scale, &j->fault.error);
}

const Case *judgement_case(Judgement *j, const Workload *w)
{
    return judgement_draw(j, &(Contents){w, VARIANT_DRAWN, 1.0, 0});
}

/* Half of the interval of a time that a sample predicts, as a share of it. */
static double sampling_interval(const DeviceTiming *m)
{
    for (int i = 0; i < m->n_counters; i++)
        if (!strcmp(m->counters[i].name, DEVICE_INTERVAL)) return m->counters[i].value;
    return 0;
}

int judgement_score(Judgement *j)
{
    Interval ratio;
    Verdict *v = &j->verdict;
    const DeviceTiming *m = v->timing;
    const DeviceInfo *d = evaluator_device(j->evaluator);
    if (timing_light_us(j->task, j->timed, d, &v->light_us, &v->light_is_flops, &j->fault.error))
        return -1;
    v->time_us = statistics_median(m->candidate_us, m->n);
    v->baseline_us = statistics_median(m->baseline_us, m->n);
    if (d->predicted) {
        Pairs one = timing_pairs(m);
        statistics_ratio(&one, j->evaluator->seed, &ratio);
        ratio.low /= 1 + sampling_interval(m);
        ratio.high *= 1 + sampling_interval(m);
    } else {
        paired_ratio(m, j->evaluator->seed, &ratio);
    }
    v->speedup = ratio.middle;
    v->low = ratio.low;
    v->high = ratio.high;
    if (j->unshown) {
        v->speedup = fmin(v->speedup, 1);
        v->low = fmin(v->low, 1);
        v->high = fmin(v->high, 1);
    }
    return 0;
}

int judgement_floor(Judgement *j)
{
    const Verdict *v = &j->verdict;
    /* Take the time by the ratio, too: when runs differ widely, the median time and the ratio come
     * from different runs. */
    double floor_us, time_us = fmin(v->time_us, v->baseline_us / v->speedup);
    if (timing_floor_us(j->task, j->timed, evaluator_device(j->evaluator), v->timing->mode,
                        &floor_us, &j->fault.error))
        return -1;
    if (time_us >= floor_us) return 0;
    return fault_cheat(
        &j->fault, "faster_than_light",
        "%.3f us is less than the %.3f us that the task's bytes and flops take on this device",
        time_us, floor_us);
}
