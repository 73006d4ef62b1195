/* Rows of a verdict and their means. */
#include "eval/judge/workloads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "eval/judge/baseline.h"
#include "eval/judge/paired_timing.h"

/* Can other sizes mend the failure, on a device that computes? */
static int is_of_sizes(const Judgement *j, ErrorCode code)
{
    const Machine *m = &j->evaluator->machine;
    Error sick;
    if (code != ERROR_LIMIT && code != ERROR_MEMORY && code != ERROR_INVALID &&
        code != ERROR_UNSUPPORTED && code != ERROR_DEVICE)
        return 0;
    return !m->ops->clock || !m->ops->clock->canary(m->device, &sick);
}

/* The baseline runs, and then, once a task, what a timing needs beside the candidate has room. */
static int run_at_own(Judgement *j)
{
    if (baseline_need(j)) return -1;
    if (j->baseline->rehearsed) return 0;
    if (paired_rehearse(j)) return -1;
    j->baseline->rehearsed = 1;
    return 0;
}

/* After the baseline has failed at the module's own sizes. Returns -1 where it fails at others, too. */
static int leave_own(Judgement *j)
{
    Cases *cases = j->evaluator->cases;
    const Error first = j->fault.error;
    if (!is_of_sizes(j, first.code)) return -1;
    cases_leave_own(cases, j->task, first.text);
    workloads_begin(j);
    if (baseline_need(j)) {
        cases_leave_own(cases, j->task, NULL);
        return -1;
    }
    j->fault = (Fault){.outcome = OUTCOME_EVALUATOR_ERROR};
    judgement_key(j);
    log_warn("task %s is not timed at its module's own sizes: %s", j->task->name, first.text);
    return 0;
}

int step_sizes(Judgement *j)
{
    char at[VERDICT_CHECK_TEXT];
    if (!j->task->own) return 0;
    if (j->timed == j->task->own && run_at_own(j) && leave_own(j)) return -1;
    const char *why = cases_left_own(j->evaluator->cases, j->task);
    if (!why) return 0;
    task_workload_text(j->task, j->timed, at, sizeof at);
    verdict_pass(&j->verdict, "%.60s in place of the module's own sizes: %s", at, why);
    return 0;
}

void workloads_begin(Judgement *j)
{
    j->n_pairs = task_timed(j->task, j->pairs);
    if (j->task->own && !judgement_is_predicted(j) && cases_take_own(j->evaluator->cases, j->task))
        j->pairs[0].timed = j->task->own;
    j->verdict.n_rows = 0;
    free(j->first_timing);
    j->first_timing = NULL;
    workloads_take(j, 0);
}

void workloads_take(Judgement *j, int i)
{
    j->timed = j->pairs[i].timed;
    j->small = j->pairs[i].small;
    j->unshown = 0;
}

static double all_weights(const Judgement *j)
{
    double sum = 0;
    for (int i = 0; i < j->n_pairs; i++) sum += j->pairs[i].timed->weight;
    return sum;
}

void workloads_note(Judgement *j, int i)
{
    static const size_t role = sizeof "time " - 1;
    Verdict *v = &j->verdict;
    char text[VERDICT_CHECK_TEXT + sizeof "time "];
    if (j->n_pairs < 2) return;
    VerdictRow *r = &v->rows[i];
    task_workload_text(j->task, j->timed, text, sizeof text);
    *r = (VerdictRow){.weight = j->timed->weight / all_weights(j),
                      .speedup = v->speedup,
                      .low = v->low,
                      .high = v->high,
                      .time_us = v->time_us,
                      .baseline_us = v->baseline_us,
                      .light_us = v->light_us};
    snprintf(r->sizes, sizeof r->sizes, "%s", strlen(text) > role ? text + role : text);
    v->n_rows = i + 1;
    DeviceTiming *kept = i ? j->first_timing : v->timing;
    if (kept != v->timing) free(v->timing);
    if (kept != j->first_timing) free(j->first_timing);
    j->first_timing = kept;
    v->timing = NULL;
    v->low = 0;
}

/* Of intervals that do not depend on each other: their logarithms' widths add up in quadrature. */
void workloads_mean(Judgement *j)
{
    Verdict *v = &j->verdict;
    double middle = 0, below = 0, above = 0, time = 0, baseline = 0, light = 0;
    if (j->n_pairs < 2) return;
    for (int i = 0; i < v->n_rows; i++) {
        const VerdictRow *r = &v->rows[i];
        middle += r->weight * log(r->speedup);
        below = hypot(below, r->weight * log(r->speedup / fmax(r->low, 1e-9)));
        above = hypot(above, r->weight * log(r->high / r->speedup));
        time += r->weight * log(r->time_us);
        baseline += r->weight * log(r->baseline_us);
        light += r->weight * log(fmax(r->light_us, 1e-9));
    }
    v->speedup = exp(middle);
    v->low = exp(middle - below);
    v->high = exp(middle + above);
    v->time_us = exp(time);
    v->baseline_us = exp(baseline);
    v->light_us = exp(light);
    v->timing = j->first_timing;
    j->first_timing = NULL;
    workloads_take(j, 0);
}
