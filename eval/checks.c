#include "eval/checks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Powers of two: the inputs are scaled without rounding. */
static const double scales[] = {1.0, 8.0, 0.125};

void checks_pass(ChecksPassed *p, const char *fmt, ...)
{
    va_list ap;
    if (p->n == CHECKS_MAX) return;
    va_start(ap, fmt);
    vsnprintf(p->text[p->n++], sizeof p->text[0], fmt, ap);
    va_end(ap);
}

static int resolve_dry(Loaded *l, const Workload *w, Finding *f)
{
    DeviceLaunch *launches = NULL;
    int n, line;
    Error text;
    int rc = plan_resolve(&l->context, w, NULL, &launches, &n, &line, &text);
    free(launches);
    if (rc) finding_set(f, OUTCOME_PLAN_ERROR, line, "%s", text.text);
    return rc ? 1 : 0;
}

int checks_plan(Loaded *l, const Workload *timed, Finding *f)
{
    const Task *t = l->task;
    Error text;
    int line;
    if (plan_check_names(&l->context, &line, &text)) {
        finding_set(f, OUTCOME_PLAN_ERROR, line, "%s", text.text);
        return 1;
    }
    for (int i = 0; i < t->n_workloads; i++)
        if (t->workloads[i].role == ROLE_CHECK && resolve_dry(l, &t->workloads[i], f)) return 1;
    return resolve_dry(l, timed, f);
}

int checks_explain_wrong(Rig *r, Finding *f, Error *err)
{
    Finding fresh;
    if (f->outcome != OUTCOME_WRONG_RESULT || r->loaded->runs < 2) return 1;
    int rc = loaded_again(r->loaded, &fresh, err);
    if (!rc) rc = rig_resolve(r, &fresh);
    if (!rc) rc = rig_run(r, &fresh, err);
    if (!rc) rc = rig_compare(r, &fresh, err);
    if (rc < 0) return -1;
    if (rc > 0) return 1;
    finding_set(f, OUTCOME_CHEAT, 0, "%s: right in a freshly loaded module, wrong in one that has run before: a __device__ "
                                     "variable carries state from one launch to the next", r->where);
    snprintf(f->cheat, sizeof f->cheat, "stale_result");
    return 1;
}

static int run_and_compare(Rig *r, Finding *f, Error *err)
{
    int rc = rig_run(r, f, err);
    if (!rc) rc = rig_compare(r, f, err);
    return rc == 1 ? checks_explain_wrong(r, f, err) : rc;
}

/* The inputs of a run that was right, with blocks and warps in another order: a kernel that is right in one order
 * only is a race that a simulator's fixed order hides. A wait for a flag may never end in that order and is no fault. */
int checks_disturbed(Rig *r, ChecksPassed *passed, Finding *f, Error *err)
{
    const Loaded *l = r->loaded;
    Finding found;
    if (!l->ops->disturb) return 0;
    l->ops->disturb(l->device, 1);
    int rc = rig_run(r, &found, err);
    if (!rc) rc = rig_compare(r, &found, err);
    l->ops->disturb(l->device, 0);
    if (rc == 1 && found.outcome == OUTCOME_TIMEOUT) return 0;
    if (rc == 1)
        finding_set(f, OUTCOME_RACE, found.line, "right when blocks and warps run in the order of their indices, not in the "
                                                 "opposite one, and a device takes any: %.1200s", found.message);
    if (!rc) checks_pass(passed, "%s: blocks and warps in another order", r->where);
    return rc;
}

/* Equal inputs, outputs undefined again: the same bytes. Then other inputs at the same addresses. */
static int repeat(Rig *r, Cases *cases, uint64_t seed, ChecksPassed *passed, Finding *f, Error *err)
{
    Digest first, second;
    Loaded *l = r->loaded;
    int rc = rig_digest(r, &first, err);
    if (!rc) rc = run_and_compare(r, f, err);
    if (!rc) rc = rig_digest(r, &second, err);
    if (rc) return rc;
    if (memcmp(&first, &second, sizeof first)) {
        finding_set(f, OUTCOME_NONDETERMINISTIC, 0, "two runs on equal inputs give outputs that differ in their bytes (%s)",
                    r->where);
        return 1;
    }
    checks_pass(passed, "%s: equal bytes on a second run", r->where);
    const Case *other = cases_get(cases, l->task, r->test->workload, case_seed(seed, l->task, r->test->workload, 1),
                                  r->test->scale, err);
    if (!other || rig_refill(r, other, err)) return -1;
    rc = run_and_compare(r, f, err);
    if (rc) return rc;
    checks_pass(passed, "%s: other inputs at the same addresses", r->where);
    return checks_disturbed(r, passed, f, err);
}

static int check_workload(Loaded *l, Cases *cases, const Workload *w, uint64_t seed, double scale, int repeated,
                          ChecksPassed *passed, Finding *f, Error *err)
{
    Rig r = {0};
    const Case *c = cases_get(cases, l->task, w, case_seed(seed, l->task, w, 0), scale, err);
    if (!c) return -1;
    int rc = rig_open(&r, l, c, f, err);
    if (!rc) rc = run_and_compare(&r, f, err);
    if (!rc) checks_pass(passed, "%s", r.where);
    if (!rc && repeated) rc = repeat(&r, cases, seed, passed, f, err);
    rig_close(&r);
    return rc;
}

/* The check workload with the most output: many blocks, so that an order between them can show. */
static const Workload *largest_check(const Task *t)
{
    const Workload *best = NULL;
    size_t most = 0;
    for (int i = 0; i < t->n_workloads; i++) {
        size_t n = 0;
        if (t->workloads[i].role != ROLE_CHECK || task_elements(t, &t->workloads[i], &t->inputs[0], &n, NULL)) continue;
        if (!best || n > most) best = &t->workloads[i], most = n;
    }
    return best;
}

int checks_run(Loaded *l, Cases *cases, uint64_t seed, ChecksPassed *passed, Finding *f, Error *err)
{
    const Task *t = l->task;
    const Workload *repeated = largest_check(t);
    int k = 0;
    for (int i = 0; i < t->n_workloads; i++) {
        const Workload *w = &t->workloads[i];
        if (w->role != ROLE_CHECK) continue;
        double scale = scales[k++ % (int)(sizeof scales / sizeof *scales)];
        int rc = check_workload(l, cases, w, seed, scale, w == repeated, passed, f, err);
        if (rc) return rc;
    }
    return 0;
}
