/* A candidate could change a library's code, so that the op lines of those behind it are slow. A result that
 * is wrong shows by itself. */
#include "eval/judge/libraries_step.h"

#include <math.h>
#include <string.h>

#include "eval/judge/baseline.h"
#include "eval/judge/statistics.h"

enum { RUNS = 4 }; /* at most; a library prepares itself in the first */
static const double longer = 1.03, longer_us = 5; /* than in the baseline's own process */

/* The baseline's plan as if it were a candidate's, beside the tensors of case c. */
static int open_there(Judgement *j, const Case *c, Loaded *l, Run *r, Fault *f)
{
    Candidate *plan = &j->baseline->own.candidate;
    loaded_init(l, &j->evaluator->machine, j->task, 0);
    int rc = loaded_compile(l, plan, f);
    return rc ? rc : run_open(r, l, c, NULL, f);
}

/* The least time of its runs, until it is no longer than the baseline's. */
static int time_there(Judgement *j, Run *r, double baseline_us, double *us, Fault *f)
{
    const Loaded *l = r->loaded;
    const ClockOptions *opt = &j->evaluator->clock;
    int rc = l->ops->clock->lock(l->device, 1, &f->error);
    *us = INFINITY;
    for (int i = 0; i < RUNS && !rc && *us > longer * baseline_us + longer_us; i++) {
        DeviceClock clock;
        rc = run_reset(r, &f->error);
        if (!rc)
            rc = l->ops->clock->time(l->device, r->launches, r->n_launches, opt->mode, 0.5, &clock,
                                     f);
        if (!rc) *us = fmin(*us, clock.us);
    }
    Error ignored;
    if (l->ops->clock->lock(l->device, 0, rc ? &ignored : &f->error) && !rc) rc = -1;
    return rc ? rc : run_compare(r, f);
}

int step_libraries(Judgement *j)
{
    const DeviceTiming *t = j->verdict.timing;
    Fault f = {0};
    Loaded l;
    Run r = {0};
    double us = 0;
    if (!j->shared || !j->baseline->own.candidate.plan.n_ops) return 0;
    const Case *c = judgement_case(j, j->timed, 0);
    if (!c) return -1;
    double baseline_us = statistics_median(t->baseline_us, t->n);
    int rc = open_there(j, c, &l, &r, &f);
    if (!rc) rc = time_there(j, &r, baseline_us, &us, &f);
    run_close(&r);
    loaded_close(&l);
    if (rc < 0) return error_set(&j->fault.error, f.error.code, "%s", f.error.text);
    if (!rc && us <= longer * baseline_us + longer_us) return 0;
    return error_set(
        &j->fault.error, ERROR_DEVICE,
        "the baseline %s beside a candidate, in a process that others have used: %.600s",
        rc ? "fails" : "is slow", f.message);
}
