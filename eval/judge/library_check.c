/* A candidate could change a library's code, so that the op lines of those behind it are slow. A result that
 * is wrong shows by itself. */
#include "eval/judge/library_check.h"

#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "eval/judge/baseline.h"
#include "eval/judge/paired_interval.h"
#include "eval/judge/statistics.h"

enum { RUNS = 4 /* at most */, MOST_TURNS = 24, LONG_TURNS = 4 /* of PAIRED_LONG_US */ };
/* Than in the baseline's own process: one run is as fast. A context adds PAIRED_CONTEXT_US a launch, and the
 * events of one run err by a microsecond. */
static const double longer = 1.03, longer_us = 1;

struct LibraryCheck {
    Loaded loaded;
    Run run;
};

/* The baseline's plan under a baseline's bounds, beside the candidate: all buffers are those of the
 * baseline's run. */
static int open_there(Judgement *j, const Run *baseline, LibraryCheck *c, Fault *f)
{
    loaded_init(&c->loaded, &j->evaluator->machine, j->task, 1);
    c->loaded.beside = 1;
    int rc = loaded_compile(&c->loaded, &j->baseline->own.candidate, f);
    return rc ? rc : run_open(&c->run, &c->loaded, baseline->test, baseline, f);
}

static int fails(Judgement *j, const Fault *f)
{
    return error_set(
        &j->fault.error, ERROR_DEVICE,
        "the baseline is slow or fails beside libraries that other candidates have used: %.300s "
        "%.300s",
        f->message, f->error.text);
}

int library_check_open(Judgement *j, const Run *baseline, LibraryCheck **out)
{
    Fault f = {0};
    if (j->loaded.home != HOME_LIBRARY || !j->baseline->own.candidate.plan.n_ops) return 0;
    LibraryCheck *c = *out = memory_alloc(sizeof *c);
    int rc = open_there(j, baseline, c, &f);
    const Loaded *l = &c->loaded;
    if (!rc) rc = l->ops->run(l->device, c->run.launches, c->run.n_launches, &f);
    return rc ? fails(j, &f) : 0;
}

/* 1: the baseline takes no longer there in one of its runs. *us: its time. */
static int is_as_fast(Judgement *j, Run *r, double most_us, double *us, Fault *f)
{
    const Loaded *l = r->loaded;
    for (int i = 0; i < RUNS; i++) {
        DeviceClock clock;
        if (run_reset(r, &f->error) ||
            l->ops->clock->time(l->device, r->launches, r->n_launches, j->evaluator->clock.mode,
                                0.5, &clock, f))
            return 0;
        *us = clock.us;
        if (clock.us <= most_us) return !run_compare(r, f);
        log_debug("%s: the baseline beside the candidate: %.1f us, in its own process at most %.1f",
                  j->task->name, clock.us, most_us);
    }
    return 0;
}

int library_check(Judgement *j, LibraryCheck *c, const Run *baseline, double us, double *there_us)
{
    Fault f = {0};
    *there_us = 0;
    if (!c) return 0;
    c->run.test = baseline->test;
    c->run.rotation = baseline->rotation;
    double most_us = longer * us + longer_us + PAIRED_CONTEXT_US * c->run.n_launches;
    return is_as_fast(j, &c->run, most_us, there_us, &f) ? 0 : fails(j, &f);
}

static int clock_one(Judgement *j, Run *r, double *us, Fault *f)
{
    const Loaded *l = r->loaded;
    DeviceClock clock = {0};
    int rc = run_reset(r, &f->error);
    if (!rc)
        rc = l->ops->clock->time(l->device, r->launches, r->n_launches, j->evaluator->clock.mode,
                                 0.5, &clock, f);
    *us = clock.us;
    return rc;
}

int library_share(Judgement *j, LibraryCheck *c, Run *baseline, int n, double *share)
{
    double own[MOST_TURNS], there[MOST_TURNS];
    Fault f = {0};
    if (n > MOST_TURNS) n = MOST_TURNS;
    c->run.test = baseline->test;
    c->run.rotation = baseline->rotation;
    for (int i = 0; i < 2 * n; i++) {
        int first = i / 2 % 2 == i % 2; /* each is the first of a turn as often */
        if (first ? clock_one(j, baseline, &own[i / 2], &f)
                  : clock_one(j, &c->run, &there[i / 2], &f))
            return fails(j, &f);
        if (i == 2 * LONG_TURNS - 1 && own[0] > PAIRED_LONG_US && there[0] > PAIRED_LONG_US)
            n = LONG_TURNS;
    }
    double faster = statistics_midmean(&(Pairs){own, there, n});
    log_debug("%s: the baseline is %.4f times as fast beside the candidate", j->task->name, faster);
    *share = fmin(1, 1 / faster);
    return 0;
}

void library_check_close(LibraryCheck *c)
{
    if (!c) return;
    run_close(&c->run);
    loaded_close(&c->loaded);
    free(c);
}
