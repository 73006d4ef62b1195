/* The checks of one candidate, from the cheapest mistake to the costliest. */
#include "eval/judge/checks.h"

#include <stdlib.h>
#include <string.h>

#include "eval/candidate/ptx_words.h"
#include "eval/judge/loaded_ops.h"
#include "tasks/regimes.h"

enum { SCALES = CHECKS_SCALES, WIN_TRIAL = 2 }; /* WIN_TRIAL: of case_seed, in no earlier run */
_Static_assert(CHECKS_UNSEEN == SCALES - 1 + VARIANTS - VARIANT_NEEDLES + 1,
               "two more scales, the variants, and the ends of integers' ranges");
/* Powers of two scale without rounding. */
const double checks_scales[SCALES] = {1.0, 8.0, 0.125};

void checks_warn(Judgement *j)
{
    const Loaded *l = &j->loaded;
    const Fault *event;
    if (!l->ops || !l->ops->prediction) return;
    for (int i = 0; (event = l->ops->prediction->warning(l->device, i)); i++)
        verdict_warn(&j->verdict, "line %d %.140s", event->line, event->message + event->what);
}

static int resolve_dry(Loaded *l, const Workload *w, Fault *f)
{
    DeviceLaunch *launches = NULL;
    int n;
    if (loaded_ops_at(l, w, f)) return 1;
    int rc = plan_resolve(&l->context, w, NULL, &launches, &n, f);
    free(launches);
    return rc;
}

int checks_plan(Loaded *l, const Workload *timed, Fault *f)
{
    const Task *t = l->task;
    if (plan_check_names(&l->context, f)) return 1;
    for (int i = 0; i < t->n_workloads; i++)
        if (t->workloads[i].role == ROLE_CHECK && resolve_dry(l, &t->workloads[i], f)) return 1;
    return resolve_dry(l, timed, f);
}

int checks_has_variables(const Loaded *l)
{
    return l->code.ptx && strstr(l->code.ptx, ".global .") != NULL;
}

int checks_explain_wrong(Run *r, Fault *f)
{
    Fault fresh;
    int used = r->loaded->runs > 1;
    if (f->outcome != OUTCOME_WRONG_RESULT) return 1;
    int rc = loaded_again(r->loaded, &fresh);
    if (!rc) rc = run_resolve(r, &fresh);
    if (!rc) rc = run_launch(r, &fresh);
    if (!rc) rc = run_compare(r, &fresh);
    if (rc < 0) f->error = fresh.error;
    if (rc) return rc;
    if (!used || !checks_has_variables(r->loaded))
        return fault_set(f, OUTCOME_NONDETERMINISTIC, 0,
                         "wrong in one run and right in the next on equal inputs%s: a race (%s)",
                         checks_has_variables(r->loaded)
                             ? ", in a module that was loaded again"
                             : ", and there is no variable that could explain it",
                         r->where);
    return fault_cheat(
        f, "stale_result",
        "%s: right in a freshly loaded module, wrong in one that has run before: a __device__ "
        "variable carries state from one launch to the next",
        r->where);
}

int checks_once(Run *r, Fault *f)
{
    int rc = run_launch(r, f);
    if (!rc) rc = run_compare(r, f);
    /* A wrong first run has no earlier state that could explain it. */
    return rc == 1 && r->loaded->runs > 1 ? checks_explain_wrong(r, f) : rc;
}

/* A kernel that is right only in the simulator's usual order of blocks and warps has a race. A
 * timeout is not reported: a wait for a flag of another block may never end in the other order. */
int checks_disturbed(Judgement *j, Run *r)
{
    const Loaded *l = r->loaded;
    Fault found;
    if (!l->ops->prediction) return 0;
    l->ops->prediction->disturb(l->device, 1);
    int rc = run_launch(r, &found);
    if (!rc) rc = run_compare(r, &found);
    l->ops->prediction->disturb(l->device, 0);
    if (rc == 1 && found.outcome == OUTCOME_TIMEOUT) return 0;
    if (rc < 0) j->fault.error = found.error;
    if (rc == 1)
        fault_set(&j->fault, OUTCOME_RACE, found.line,
                  "right when blocks and warps run in the order of their indices, not in the "
                  "opposite one, and a device takes any: %.1200s",
                  found.message);
    if (!rc) verdict_pass(&j->verdict, "%s: blocks and warps in another order", r->where);
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

/* Launch and compare with these at the same addresses. */
static int check_contents(Judgement *j, const Contents *of)
{
    Run *r = &j->largest;
    const Case *c = judgement_draw(j, of);
    if (!c || run_refill(r, c, 0, &j->fault.error)) return -1;
    int rc = checks_once(r, &j->fault);
    if (!rc) verdict_pass(&j->verdict, "%s", r->where);
    return rc;
}

/* Launch again on the same inputs: the outputs must have the same bytes, or be right again where
 * atomics choose the order. Then launch on other inputs at the same addresses. */
int step_repeat(Judgement *j)
{
    Run *r = &j->largest;
    Fault *f = &j->fault;
    Digest first, second;
    if (!r->loaded) return 0;
    int rc = run_digest(r, &first, &f->error);
    if (!rc) rc = checks_once(r, f);
    if (!rc) rc = run_digest(r, &second, &f->error);
    if (rc) return rc;
    int differ = memcmp(&first, &second, sizeof first);
    if (differ && !has_atomics(r->loaded))
        return fault_set(
            f, OUTCOME_NONDETERMINISTIC, 0,
            "two runs on equal inputs give outputs that differ in their bytes, and no atomic "
            "operation explains it (%s)",
            r->where);
    verdict_pass(&j->verdict,
                 differ ? "%s: a second run differs by the order of atomics only"
                        : "%s: equal bytes on a second run",
                 r->where);
    const Case *other =
        judgement_draw(j, &(Contents){r->test->workload, VARIANT_DRAWN, r->test->scale, 1});
    if (!other || run_refill(r, other, 0, &f->error)) return -1;
    rc = checks_once(r, f);
    if (rc) return rc;
    verdict_pass(&j->verdict, "%s: other inputs at the same addresses", r->where);
    return checks_disturbed(j, r);
}

/* Contents at which faults of the task's operators show, where what honest kernels compute is finite. */
static int check_regimes(Judgement *j)
{
    Task *t = j->task;
    Run r = {0};
    const Workload *w = regimes_workload(t);
    int rc = 0;
    for (Variant v = VARIANT_SIGNS; v < VARIANTS_OF_REGIMES && !rc; v++) {
        if (!w || !task_has_variant(t, w, v)) continue;
        const Case *c = judgement_draw(j, &(Contents){w, v, 1.0, 0});
        if (!c) rc = -1;
        if (!c || !c->usable) continue;
        rc = r.loaded ? -!!run_refill(&r, c, 0, &j->fault.error)
                      : run_open(&r, &j->loaded, c, NULL, &j->fault);
        if (!rc) rc = checks_once(&r, &j->fault);
        if (!rc) verdict_pass(&j->verdict, "%s", r.where);
    }
    run_close(&r);
    return rc;
}

/* Where the checks are fewer than the scales, the largest one is judged at all. */
static int check_scales(Judgement *j)
{
    int checks = 0, rc = 0;
    const Workload *w = j->largest.test->workload;
    double own = j->largest.test->scale;
    for (int i = 0; i < j->task->n_workloads; i++)
        checks += j->task->workloads[i].role == ROLE_CHECK;
    for (int i = 0; i < SCALES && checks < SCALES && !rc; i++)
        if (checks_scales[i] != own)
            rc = check_contents(j, &(Contents){w, VARIANT_DRAWN, checks_scales[i], 0});
    return rc;
}

int step_variants(Judgement *j)
{
    int rc = 0;
    if (!j->largest.loaded) return 0;
    const Workload *w = j->largest.test->workload;
    rc = check_scales(j);
    for (Variant v = VARIANT_NEEDLES; v < VARIANTS && !rc; v++)
        if (task_has_variant(j->task, w, v)) rc = check_contents(j, &(Contents){w, v, 1.0, 0});
    run_close(&j->largest);
    return rc ? rc : check_regimes(j);
}

/* *r stays open. */
static int check_workload(Judgement *j, const Workload *w, double scale, Run *r)
{
    const Case *c = judgement_draw(j, &(Contents){w, VARIANT_DRAWN, scale, 0});
    if (!c) return -1;
    int rc = run_open(r, &j->loaded, c, NULL, &j->fault);
    if (!rc) rc = checks_once(r, &j->fault);
    if (!rc) verdict_pass(&j->verdict, "%s", r->where);
    return rc;
}

/* Check the workloads that have not run, up to `last`, which stays open; NULL: all. */
static int check_until(Judgement *j, const Workload *last)
{
    int k = 0, rc = 0;
    for (int i = 0; i < j->task->n_workloads && !rc; i++) {
        const Workload *w = &j->task->workloads[i];
        Run own = {0}, *r = w == last ? &j->largest : &own;
        if (w->role != ROLE_CHECK || k++ < j->n_checked) continue;
        rc = check_workload(j, w, checks_scales[j->n_checked++ % SCALES], r);
        run_close(&own);
        if (w == last) break;
    }
    return rc;
}

int step_check(Judgement *j)
{
    j->n_checked = 0;
    run_close(&j->largest);
    return check_until(j, task_largest_check(j->task));
}

int step_check_rest(Judgement *j)
{
    return check_until(j, NULL);
}

int checks_run(Judgement *j)
{
    int rc = step_check(j);
    if (!rc) rc = step_repeat(j);
    if (!rc) rc = step_variants(j);
    return rc ? rc : step_check_rest(j);
}

/* The scales but the first, then the variants. Sums of integers are longest at the timed size. */
int checks_unseen(Judgement *j, const Workload *w, uint64_t seed, int i, const Case **out)
{
    Task *t = j->task;
    int scaled = i < SCALES - 1;
    Variant v = scaled ? VARIANT_DRAWN : VARIANT_NEEDLES + (i - (SCALES - 1));
    if (v == VARIANTS) v = VARIANT_RANGE;
    *out = NULL;
    if (!scaled && !task_has_variant(t, w, v)) return 0;
    *out = cases_get(j->evaluator->cases, t, w, v, case_seed(seed, t, w, WIN_TRIAL),
                     scaled ? checks_scales[i + 1] : 1.0, &j->fault.error);
    if (!*out) return -1;
    if (!(*out)->usable) *out = NULL;
    return 0;
}
