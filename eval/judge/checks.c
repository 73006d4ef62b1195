/* The checks of one candidate, from the cheapest mistake to the costliest. */
#include "eval/judge/checks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/candidate/ptx_words.h"
#include "eval/judge/loaded_ops.h"

enum { SCALES = 3, WIN_TRIAL = 2 }; /* WIN_TRIAL: of case_seed, in no earlier run */
_Static_assert(CHECKS_UNSEEN == SCALES - 1 + VARIANTS - VARIANT_NEEDLES,
               "two more scales, and the variants");
/* Powers of two scale without rounding. */
static const double scales[SCALES] = {1.0, 8.0, 0.125};

void checks_pass(ChecksPassed *p, const char *fmt, ...)
{
    va_list ap;
    if (p->n == VERDICT_MAX_CHECKS) return;
    va_start(ap, fmt);
    vsnprintf(p->text[p->n++], sizeof p->text[0], fmt, ap);
    va_end(ap);
}

void checks_warn(ChecksPassed *p, const Loaded *l)
{
    const DeviceFault *event;
    if (!l->ops || !l->ops->warning) return;
    for (int i = 0; p->n_warnings < VERDICT_MAX_WARNINGS && (event = l->ops->warning(l->device, i));
         i++) {
        int is_new = 1;
        char *to = p->warnings[p->n_warnings];
        snprintf(to, sizeof p->warnings[0], "line %d %.140s", event->line,
                 event->message + event->what);
        for (int k = 0; k < p->n_warnings; k++) is_new &= strcmp(p->warnings[k], to) != 0;
        p->n_warnings += is_new;
    }
}

static int resolve_dry(Loaded *l, const Workload *w, Finding *f)
{
    DeviceLaunch *launches = NULL;
    int n, line;
    Error text;
    if (loaded_ops_at(l, w, f)) return 1;
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

int checks_has_variables(const Loaded *l)
{
    return l->code.ptx && strstr(l->code.ptx, ".global .") != NULL;
}

int checks_explain_wrong(Run *r, Finding *f, Error *err)
{
    Finding fresh;
    int used = r->loaded->runs > 1;
    if (f->outcome != OUTCOME_WRONG_RESULT) return 1;
    int rc = loaded_again(r->loaded, &fresh, err);
    if (!rc) rc = run_resolve(r, &fresh);
    if (!rc) rc = run_launch(r, &fresh, err);
    if (!rc) rc = run_compare(r, &fresh, err);
    if (rc < 0) return -1;
    if (rc > 0) return 1;
    if (!used || !checks_has_variables(r->loaded)) {
        finding_set(f, OUTCOME_NONDETERMINISTIC, 0,
                    "wrong in one run and right in the next on equal inputs%s: a race (%s)",
                    checks_has_variables(r->loaded)
                        ? ", in a module that was loaded again"
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

static int run_and_compare(Run *r, Finding *f, Error *err)
{
    int rc = run_launch(r, f, err);
    if (!rc) rc = run_compare(r, f, err);
    /* A wrong first run has no earlier state that could explain it. */
    return rc == 1 && r->loaded->runs > 1 ? checks_explain_wrong(r, f, err) : rc;
}

void checks_disturbed_passed(const Run *r, ChecksPassed *passed)
{
    checks_pass(passed, "%s: blocks and warps in another order", r->where);
}

/* A kernel that is right only in the simulator's usual order of blocks and warps has a race. A
 * timeout is not reported: a wait for a flag of another block may never end in the other order. */
int checks_disturbed(Run *r, ChecksPassed *passed, Finding *f, Error *err)
{
    const Loaded *l = r->loaded;
    Finding found;
    if (!l->ops->disturb) return 0;
    l->ops->disturb(l->device, 1);
    int rc = run_launch(r, &found, err);
    if (!rc) rc = run_compare(r, &found, err);
    l->ops->disturb(l->device, 0);
    if (rc == 1 && found.outcome == OUTCOME_TIMEOUT) return 0;
    if (rc == 1)
        finding_set(f, OUTCOME_RACE, found.line,
                    "right when blocks and warps run in the order of their indices, not in the "
                    "opposite one, and a device takes any: %.1200s",
                    found.message);
    if (!rc) checks_disturbed_passed(r, passed);
    return rc;
}

/* The code has an atomic operation or a reducing copy. Sums made with it, or under a lock of it,
 * are added in the order in which threads arrive, and their last bits may differ between runs. */
static int ptx_has_atomics(const char *ptx)
{
    static const char *const operations[] = {"atom.", "red.", "cp.reduce.", "multimem.red."};
    size_t n;
    for (const char *p = ptxwords_next(ptx, &n); p; p = ptxwords_next(p + n, &n))
        for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
            if (!strncmp(p, operations[i], strlen(operations[i])) && (p == ptx || p[-1] != '.'))
                return 1;
    return 0;
}

static int has_atomics(const Loaded *l)
{
    if (l->code.ptx && ptx_has_atomics(l->code.ptx)) return 1;
    for (int i = 0; i < l->n_op_modules; i++)
        if (l->op_modules[i].code.ptx && ptx_has_atomics(l->op_modules[i].code.ptx)) return 1;
    for (int i = 0; i < l->n_workload_ops; i++)
        if (plan_ops_vary(&l->workload_ops[i].ops)) return 1;
    return 0;
}

/* Launch again on the same inputs: the outputs must have the same bytes, or be right again where
 * atomics choose the order. Then launch on other inputs at the same addresses. */
static int repeat(Run *r, Cases *cases, uint64_t seed, ChecksPassed *passed, Finding *f, Error *err)
{
    Digest first, second;
    Loaded *l = r->loaded;
    int rc = run_digest(r, &first, err);
    if (!rc) rc = run_and_compare(r, f, err);
    if (!rc) rc = run_digest(r, &second, err);
    if (rc) return rc;
    int differ = memcmp(&first, &second, sizeof first);
    if (differ && !has_atomics(l)) {
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
    if (!other || run_refill(r, other, 0, err)) return -1;
    rc = run_and_compare(r, f, err);
    if (rc) return rc;
    checks_pass(passed, "%s: other inputs at the same addresses", r->where);
    return checks_disturbed(r, passed, f, err);
}

/* Launch and compare with case c at the same addresses. */
static int check_contents(Run *r, const Case *c, ChecksPassed *passed, Finding *f, Error *err)
{
    if (!c || run_refill(r, c, 0, err)) return -1;
    int rc = run_and_compare(r, f, err);
    if (!rc) checks_pass(passed, "%s", r->where);
    return rc;
}

static int check_variants(Run *r, Cases *cases, uint64_t seed, ChecksPassed *passed, Finding *f,
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
    Run r = {0};
    const Case *c =
        cases_get(cases, l->task, w, VARIANT_DRAWN, case_seed(seed, l->task, w, 0), scale, err);
    if (!c) return -1;
    int rc = run_open(&r, l, c, NULL, f, err);
    if (!rc) rc = run_and_compare(&r, f, err);
    if (!rc) checks_pass(passed, "%s", r.where);
    if (!rc && repeated) rc = repeat(&r, cases, seed, passed, f, err);
    if (!rc && repeated) rc = check_variants(&r, cases, seed, passed, f, err);
    run_close(&r);
    return rc;
}

int checks_run(Loaded *l, Cases *cases, uint64_t seed, ChecksPassed *passed, Finding *f, Error *err)
{
    const Task *t = l->task;
    const Workload *repeated = task_largest_check(t);
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

/* The scales but the first, then the variants. */
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
