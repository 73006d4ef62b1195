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
    const Case *c = judgement_case(own, own->timed, 0);
    if (!c) return -1;
    int rc = run_open(&run, &own->loaded, c, NULL, &own->fault);
    if (!rc) rc = run_launch(&run, &own->fault);
    if (!rc) rc = run_compare(&run, &own->fault);
    run_close(&run);
    return rc;
}

static int prepare(Baseline *b)
{
    Judgement *own = &b->own;
    Fault *f = &own->fault;
    int predicted = judgement_is_predicted(own);
    const Workload *list[] = {own->timed, own->small};
    int rc = candidate_parse_trusted(own->source, own->len, &own->candidate, f);
    loaded_init(&own->loaded, &own->evaluator->machine, own->task, 1);
    if (!rc) rc = loaded_compile(&own->loaded, &own->candidate, f);
    if (!rc) rc = checks_plan(&own->loaded, own->timed, f);
    if (!rc) rc = loaded_ops_compile(&own->loaded, list, predicted ? 2 : 1, f);
    return rc ? rc : predicted ? predict(b) : run_once(own);
}

/* The word of tools/rival.py for it. */
static const char *precision_word(const Precision *p)
{
    if (p->matmul != MATMUL_HIGHEST) return precision_matmul_names[p->matmul];
    return p->cudnn_tf32 ? "default" : "highest";
}

/* PyTorch's times of the task on this GPU. Verdicts do without a table that cannot be read. */
static void find_rivals(Judgement *own)
{
    Error err;
    const RivalKey key = {own->task, own->timed, evaluator_device(own->evaluator)->name,
                          precision_word(&own->task->precision)};
    if (rivals_find(&key, &own->verdict, &err))
        log_warn("PyTorch's times are not known: %s", err.text);
}

static Baseline *find(Judgement *j)
{
    Evaluator *e = j->evaluator;
    int i = 0;
    while (e->tasks.tasks[i] != j->task) i++;
    if (!e->baselines[i]) e->baselines[i] = memory_alloc(sizeof *e->baselines[i]);
    return e->baselines[i];
}

int baseline_need(Judgement *j)
{
    Evaluator *e = j->evaluator;
    Baseline *b = j->baseline = find(j);
    if (b->ready) return 0;
    const char *source = e->baseline_source ? e->baseline_source : task_baseline(j->task);
    judgement_begin(&b->own, e, j->task, source, strlen(source));
    b->own.trusted = 1;
    int rc = prepare(b);
    b->ready = !rc;
    if (!rc && !judgement_is_predicted(j)) find_rivals(&b->own);
    if (!rc) return 0;
    Fault *f = &b->own.fault;
    if (rc > 0)
        error_set(&j->fault.error, ERROR_INVALID, "the baseline of task %s fails: %s: %.600s",
                  j->task->name, outcome_name(f->outcome), f->message);
    else
        j->fault.error = f->error;
    baseline_release(b);
    return -1;
}

void baseline_release(Baseline *b)
{
    judgement_release(&b->own);
    b->ready = 0;
}
