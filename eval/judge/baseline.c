/* Compile, check and time a task's baseline. Its failure is an error of the evaluator. */
#include "eval/judge/baseline.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "eval/judge/checks.h"
#include "eval/judge/loaded_ops.h"
#include "eval/judge/predicted_timing.h"
#include "eval/judge/rivals.h"
#include "eval/judge/workloads.h"

static int predict(Baseline *b)
{
    Judgement *own = &b->own;
    int rc = predicted_measure(own);
    const DeviceTiming *timing = own->verdict.timing;
    if (!rc) b->us = timing->candidate_us[0];
    b->n_counters = timing->n_counters;
    memcpy(b->counters, timing->counters, sizeof b->counters);
    verdict_release(&own->verdict);
    loaded_close(&own->loaded);
    return rc;
}

/* On a device with a clock: run the baseline once and compare its outputs. */
static int run_once(Judgement *own)
{
    Run run = {0};
    const Case *c = judgement_case(own, own->timed);
    if (!c) return -1;
    int rc = run_open(&run, &own->loaded, c, NULL, &own->fault);
    if (!rc) rc = run_launch(&run, &own->fault);
    if (!rc) rc = run_compare(&run, &own->fault);
    if (!rc) rc = run_errors(&run, &own->errors, &own->fault.error);
    run_close(&run);
    return rc;
}

static int prepare(Baseline *b)
{
    Judgement *own = &b->own;
    Fault *f = &own->fault;
    int predicted = judgement_is_predicted(own);
    const Workload *list[] = {own->timed, own->small};
    int rc = candidate_parse(own->source, own->len, 1, &own->candidate, f);
    loaded_init(&own->loaded, &own->evaluator->machine, own->task, 1);
    if (!rc) rc = loaded_compile(&own->loaded, &own->candidate, f);
    if (!rc) rc = checks_plan(&own->loaded, own->timed, f);
    if (!rc) rc = loaded_ops_compile(&own->loaded, list, predicted ? 2 : 1, f);
    return rc ? rc : predicted ? predict(b) : run_once(own);
}

/* PyTorch's times of the task on this GPU. Verdicts do without a table that cannot be read. */
static void find_rivals(Judgement *own)
{
    Error err;
    const RivalKey key = {own->task, own->timed, evaluator_device(own->evaluator)->name,
                          rivals_precision(&own->task->precision)};
    if (rivals_find(&key, &own->verdict, &err))
        log_warn("PyTorch's times are not known: %s", err.text);
}

/* The list of j's task. */
static Baseline **list_of(const Judgement *j)
{
    const Evaluator *e = j->evaluator;
    int i = 0;
    while (e->tasks.tasks[i] != j->task) i++;
    return &e->baselines[i];
}

/* Its own small sizes are the task's, whatever the candidate's branches need. */
static void begin(Baseline *b, const Judgement *j)
{
    const Evaluator *e = j->evaluator;
    const char *source = e->baseline_source ? e->baseline_source : task_baseline(j->task);
    judgement_begin(&b->own, j->evaluator, j->task, source, strlen(source));
    b->own.trusted = 1;
    for (int i = 0; i < b->own.n_pairs; i++)
        if (b->own.pairs[i].timed == j->timed) workloads_take(&b->own, i);
}

int baseline_need(Judgement *j)
{
    Baseline **list = list_of(j), *b = *list;
    while (b && b->own.timed != j->timed) b = b->next;
    j->baseline = b;
    if (b) return 0;
    b = memory_alloc(sizeof *b);
    begin(b, j);
    int rc = prepare(b);
    if (!rc) {
        if (!judgement_is_predicted(j)) find_rivals(&b->own);
        b->next = *list;
        j->baseline = *list = b;
        return 0;
    }
    Fault *f = &b->own.fault;
    if (rc > 0)
        error_set(&j->fault.error, ERROR_INVALID, "the baseline of task %s fails: %s: %.600s",
                  j->task->name, outcome_name(f->outcome), f->message);
    else
        j->fault.error = f->error;
    baselines_free(b);
    return -1;
}

void baselines_free(Baseline *b)
{
    while (b) {
        Baseline *next = b->next;
        judgement_release(&b->own);
        free(b);
        b = next;
    }
}
