/* One predicted run, and the runs on unseen inputs after a win. */
#include "eval/judge/predicted_timing.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/judge/timing_bounds.h"

static int predict(Run *r, DeviceTiming *out, Finding *f, Error *err)
{
    Loaded *l = r->loaded;
    DeviceFault fault = {0};
    if (run_reset(r, err)) return -1;
    l->runs++;
    int rc = l->ops->predict(l->device, r->launches, r->n_launches, out, &fault, err);
    if (rc > 0) finding_fault(f, &fault, r->where);
    return rc ? rc : timing_makes_sense(out, 0, err);
}

int predicted_measure(Loaded *l, Cases *cases, const Workload *w, uint64_t seed, DeviceTiming *out,
                      ChecksPassed *passed, Finding *f, Error *err)
{
    Run r = {0};
    memset(out, 0, sizeof *out);
    const Case *c =
        cases_get(cases, l->task, w, VARIANT_DRAWN, case_seed(seed, l->task, w, 0), 1.0, err);
    if (!c) return -1;
    int rc = run_open(&r, l, c, NULL, f, err);
    if (!rc) rc = predict(&r, out, f, err);
    if (!rc) rc = run_inspect(&r, f, err);
    if (!rc) rc = run_compare(&r, f, err);
    if (rc == 1) rc = checks_explain_wrong(&r, f, err);
    if (!rc) checks_pass(passed, "%s: outputs after timing", r.where);
    if (!rc) rc = checks_disturbed(&r, passed, f, err);
    run_close(&r);
    return rc;
}

/* Predict on case c, whose run has the same limits as the timed one. The time is dropped. */
static int predict_on(Run *r, const Case *c, ChecksPassed *passed, Finding *f, Error *err)
{
    DeviceTiming *unused = memory_alloc(sizeof *unused);
    int rc = run_refill(r, c, 0, err);
    if (!rc) rc = predict(r, unused, f, err);
    if (!rc) rc = run_inspect(r, f, err);
    if (!rc) rc = run_compare(r, f, err);
    if (!rc) checks_pass(passed, "%s", r->where);
    free(unused);
    return rc;
}

int predicted_unseen(Loaded *l, Cases *cases, const Workload *w, uint64_t seed,
                     ChecksPassed *passed, Finding *f, Error *err)
{
    Run r = {0};
    const Case *c;
    int rc = checks_unseen(cases, l->task, w, seed, 0, &c, err);
    if (!rc) rc = run_open(&r, l, c, NULL, f, err);
    for (int i = 0; i < CHECKS_UNSEEN && !rc; i++) {
        rc = checks_unseen(cases, l->task, w, seed, i, &c, err);
        if (!rc && c) rc = predict_on(&r, c, passed, f, err);
    }
    run_close(&r);
    return rc;
}
