#include "eval/judge/checks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/candidate/ptx_words.h"

enum { SCALES = 3, WIN_TRIAL = 2 }; /* contents that no run before had (case_seed) */
_Static_assert(CHECKS_UNSEEN == SCALES - 1 + VARIANTS - VARIANT_NEEDLES,
               "two more scales, and the variants");
/* Powers of two: the inputs are scaled without rounding. */
static const double scales[SCALES] = {1.0, 8.0, 0.125};

void checks_pass(ChecksPassed *p, const char *fmt, ...)
{
    va_list ap;
    if (p->n == VERDICT_MAX_CHECKS) return;
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

/* The module declares variables of its own, which last from one launch to the next. */
static int has_variables(const Loaded *l)
{
    return strstr(l->code.ptx, ".global .") != NULL;
}

int checks_explain_wrong(Rig *r, Finding *f, Error *err)
{
    Finding fresh;
    int used = r->loaded->runs > 1;
    if (f->outcome != OUTCOME_WRONG_RESULT) return 1;
    int rc = loaded_again(r->loaded, &fresh, err);
    if (!rc) rc = rig_resolve(r, &fresh);
    if (!rc) rc = rig_run(r, &fresh, err);
    if (!rc) rc = rig_compare(r, &fresh, err);
    if (rc < 0) return -1;
    if (rc > 0) return 1;
    if (!used || !has_variables(r->loaded)) {
        finding_set(f, OUTCOME_NONDETERMINISTIC, 0,
                    "wrong in one run and right in the next on equal inputs%s: a race (%s)",
                    has_variables(r->loaded) ? ", in a module that was loaded anew"
                                             : ", and there is no variable that could explain it",
                    r->where);
        return 1;
    }
    finding_set(
        f, OUTCOME_CHEAT, 0,
        "%s: right in a freshly loaded module, wrong in one that has run before: a __device__ "
        "variable carries state from one launch to the next",
        r->where);
    snprintf(f->cheat, sizeof f->cheat, "stale_result");
    return 1;
}

static int run_and_compare(Rig *r, Finding *f, Error *err)
{
    int rc = rig_run(r, f, err);
    if (!rc) rc = rig_compare(r, f, err);
    return rc == 1 && r->loaded->runs > 1 ? checks_explain_wrong(r, f, err)
                                          : rc; /* most that are wrong are so at once */
}

/* The inputs of a run that was right, with blocks and warps in another order: a kernel that is
 * right in one order only is a race that a simulator's fixed order hides. A wait for a flag may
 * never end in that order and is no fault. */
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
        finding_set(f, OUTCOME_RACE, found.line,
                    "right when blocks and warps run in the order of their indices, not in the "
                    "opposite one, and a device takes any: %.1200s",
                    found.message);
    if (!rc) checks_pass(passed, "%s: blocks and warps in another order", r->where);
    return rc;
}

/* An atomic operation is in the code, or a copy that adds: what is added by it, or under a lock of
 * it, is added in the order in which threads come, and the last bits of a sum follow. */
static int takes_any_order(const Loaded *l)
{
    static const char *const operations[] = {"atom.", "red.", "cp.reduce.", "multimem.red."};
    size_t n;
    for (const char *p = ptxwords_next(l->code.ptx, &n); p; p = ptxwords_next(p + n, &n))
        for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
            if (!strncmp(p, operations[i], strlen(operations[i])) &&
                (p == l->code.ptx || p[-1] != '.'))
                return 1;
    return 0;
}

/* Equal inputs, outputs undefined again: the same bytes, or right twice where atomics choose the
 * order. Then other inputs at the same addresses. */
static int repeat(Rig *r, Cases *cases, uint64_t seed, ChecksPassed *passed, Finding *f, Error *err)
{
    Digest first, second;
    Loaded *l = r->loaded;
    int rc = rig_digest(r, &first, err);
    if (!rc) rc = run_and_compare(r, f, err);
    if (!rc) rc = rig_digest(r, &second, err);
    if (rc) return rc;
    int differ = memcmp(&first, &second, sizeof first);
    if (differ && !takes_any_order(l)) {
        finding_set(
            f, OUTCOME_NONDETERMINISTIC, 0,
            "two runs on equal inputs give outputs that differ in their bytes, and no atomic "
            "operation explains it (%s)",
            r->where);
        return 1;
    }
    checks_pass(passed,
                differ ? "%s: a second run differs by the order of atomics only"
                       : "%s: equal bytes on a second run",
                r->where);
    const Case *other =
        cases_get(cases, l->task, r->test->workload, VARIANT_DRAWN,
                  case_seed(seed, l->task, r->test->workload, 1), r->test->scale, err);
    if (!other || rig_refill(r, other, 0, err)) return -1;
    rc = run_and_compare(r, f, err);
    if (rc) return rc;
    checks_pass(passed, "%s: other inputs at the same addresses", r->where);
    return checks_disturbed(r, passed, f, err);
}

/* Other contents, at the same addresses. */
static int check_contents(Rig *r, const Case *c, ChecksPassed *passed, Finding *f, Error *err)
{
    if (!c || rig_refill(r, c, 0, err)) return -1;
    int rc = run_and_compare(r, f, err);
    if (!rc) checks_pass(passed, "%s", r->where);
    return rc;
}

static int check_variants(Rig *r, Cases *cases, uint64_t seed, ChecksPassed *passed, Finding *f,
                          Error *err)
{
    Task *t = r->loaded->task;
    const Workload *w = r->test->workload;
    int rc = 0;
    for (Variant v = VARIANT_NEEDLES; v < VARIANTS && !rc; v++)
        if (task_has_variant(t, w, v))
            rc = check_contents(r, cases_get(cases, t, w, v, case_seed(seed, t, w, 0), 1.0, err),
                                passed, f, err);
    return rc;
}

static int check_workload(Loaded *l, Cases *cases, const Workload *w, uint64_t seed, double scale,
                          int repeated, ChecksPassed *passed, Finding *f, Error *err)
{
    Rig r = {0};
    const Case *c =
        cases_get(cases, l->task, w, VARIANT_DRAWN, case_seed(seed, l->task, w, 0), scale, err);
    if (!c) return -1;
    int rc = rig_open(&r, l, c, NULL, f, err);
    if (!rc) rc = run_and_compare(&r, f, err);
    if (!rc) checks_pass(passed, "%s", r.where);
    if (!rc && repeated) rc = repeat(&r, cases, seed, passed, f, err);
    if (!rc && repeated) rc = check_variants(&r, cases, seed, passed, f, err);
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
        if (t->workloads[i].role != ROLE_CHECK ||
            task_elements(t, &t->workloads[i], &t->inputs[0], &n, NULL))
            continue;
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
        double scale = scales[k++ % SCALES];
        int rc = check_workload(l, cases, w, seed, scale, w == repeated, passed, f, err);
        if (rc) return rc;
    }
    return 0;
}

/* Two more scales, then the variants. */
int checks_unseen(Cases *cases, Task *t, const Workload *timed, uint64_t seed, int i,
                  const Case **out, Error *err)
{
    int scaled = i < SCALES - 1;
    Variant v = scaled ? VARIANT_DRAWN : VARIANT_NEEDLES + (i - (SCALES - 1));
    *out = NULL;
    if (!scaled && !task_has_variant(t, timed, v)) return 0;
    *out = cases_get(cases, t, timed, v, case_seed(seed, t, timed, WIN_TRIAL),
                     scaled ? scales[i + 1] : 1.0, err);
    return *out ? 0 : -1;
}
