/* A candidate could change a library's code, so that the op lines of those behind it are slow. A result that
 * is wrong shows by itself. */
#include "eval/judge/library_check.h"

#include "base/log.h"
#include "eval/judge/baseline.h"

enum { RUNS = 4 }; /* at most; a library prepares itself in the first */
static const double longer = 1.03, longer_us = 5; /* than in the baseline's own process */

/* The baseline's plan as if it were a candidate's: all buffers are those of the baseline's run. */
static int open_there(Judgement *j, const Run *baseline, Loaded *l, Run *r, Fault *f)
{
    loaded_init(l, &j->evaluator->machine, j->task, 0);
    int rc = loaded_compile(l, &j->baseline->own.candidate, f);
    if (!rc) rc = run_open(r, l, baseline->test, baseline, f);
    r->rotation = baseline->rotation;
    return rc;
}

/* 1: the baseline takes no longer there in one of its runs. */
static int is_as_fast(Judgement *j, Run *r, double most_us, Fault *f)
{
    const Loaded *l = r->loaded;
    for (int i = 0; i < RUNS; i++) {
        DeviceClock clock;
        if (run_reset(r, &f->error) ||
            l->ops->clock->time(l->device, r->launches, r->n_launches, j->evaluator->clock.mode,
                                0.5, &clock, f))
            return 0;
        if (clock.us <= most_us) return !run_compare(r, f);
        log_debug("%s: the baseline beside the candidate: %.1f us, in its own process at most %.1f",
                  j->task->name, clock.us, most_us);
    }
    return 0;
}

int library_check(Judgement *j, const Run *baseline, double us)
{
    Fault f = {0};
    Loaded l;
    Run r = {0};
    if (!j->baseline->own.candidate.plan.n_ops) return 0;
    int rc = open_there(j, baseline, &l, &r, &f),
        ok = !rc && is_as_fast(j, &r, longer * us + longer_us, &f);
    run_close(&r);
    loaded_close(&l);
    if (ok) return 0;
    return error_set(
        &j->fault.error, ERROR_DEVICE,
        "the baseline is slow or fails beside libraries that other candidates have used: %.300s "
        "%.300s",
        f.message, f.error.text);
}
