/* One predicted run, and the runs on unseen inputs after a win. */
#include "eval/judge/predicted_timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "eval/judge/loaded_ops.h"
#include "eval/judge/timed_contents.h"
#include "eval/judge/timing_bounds.h"
#include "tasks/shortened.h"

enum { SHORT_TRIAL = 3 }; /* of case_seed, in no earlier run */

int predicted_run(Run *r, DeviceTiming *out, Finding *f, Error *err)
{
    Loaded *l = r->loaded;
    DeviceFault fault = {0};
    if (run_reset(r, err)) return -1;
    l->runs++;
    int rc = l->ops->predict(l->device, r->launches, r->n_launches, out, &fault, err);
    if (rc > 0) run_fault(r, &fault, f);
    return rc || !out ? rc : timing_makes_sense(out, 0, err);
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
    if (!rc) rc = predicted_run(&r, out, f, err);
    log_debug("predicted");
    if (!rc) rc = run_inspect(&r, f, err);
    if (!rc) rc = run_compare(&r, f, err);
    if (rc == 1) rc = checks_explain_wrong(&r, f, err);
    if (!rc) checks_pass(passed, "%s: outputs after timing", r.where);
    if (!rc) {
        run_announce(&r);
        rc = checks_disturbed(&r, passed, f, err);
    }
    run_close(&r);
    return rc;
}

/* The least growth of a tensor of more than one element. */
static double tensor_growth(const Task *t, const Workload *small, const Workload *timed)
{
    double least = INFINITY;
    for (int i = 0; i < t->n_inputs + t->n_outputs; i++) {
        const TaskTensor *x = i < t->n_inputs ? &t->inputs[i] : &t->outputs[i - t->n_inputs];
        size_t from, to;
        if (task_elements(t, small, x, &from, NULL) || task_elements(t, timed, x, &to, NULL))
            continue;
        if (to > 1) least = fmin(least, (double)to / (double)from);
    }
    return isfinite(least) ? least : 1;
}

/* The work of the timed workload over the small workload's. */
static int work_growth(const Task *t, const Workload *small, const Workload *timed, DeviceSample *s,
                       Error *err)
{
    double b0, f0, b1, f1;
    if (task_cost(t, small, &b0, &f0, err) || task_cost(t, timed, &b1, &f1, err)) return -1;
    s->growth = fmax(b1 / fmax(b0, 1), f1 / fmax(f0, 1));
    s->least_growth = b1 / fmax(b0, 1);
    s->flops_growth = f0 > 0 ? f1 / f0 : s->least_growth;
    s->least_growth = fmin(s->least_growth, s->flops_growth);
    s->tensor_growth = tensor_growth(t, small, timed);
    s->own_flops = t->degenerate ? 0 : f1;
    s->own_bytes = t->degenerate ? 0 : b1;
    return 0;
}

/* In a plan with op lines the other kernels may grow as little as any tensor does: what follows a
 * product grows as its result. They have to compute what the op lines leave of the task. */
static void allow_op_lines(const Run *r, DeviceSample *s)
{
    int found = 0;
    for (int i = 0; i < r->n_launches; i++)
        found |= r->launches[i].library_args || r->launches[i].op_line;
    if (!found) return;
    const PlanOps *ops = r->loaded->context.ops;
    s->own_flops = ops ? fmax(0, s->own_flops - ops->flops) : INFINITY;
    s->least_growth = fmin(s->least_growth, s->tensor_growth);
    s->flops_growth = s->least_growth;
    s->own_bytes = 0;
}

/* The blocks write much less than the outputs hold, and not the last element: the grid is too
 * small. */
static int covers_outputs(const Run *r, const DeviceSample *s, Finding *f)
{
    const Loaded *l = r->loaded;
    double all = 0;
    int reached = 0;
    for (int i = 0; i < r->n_outputs; i++) {
        size_t bytes = r->test->output_bytes[i], from = bytes - 1, end;
        all += (double)bytes;
        reached |= l->ops->written(l->device, r->memory.outputs[i], &from, &end);
    }
    if (reached || s->scaled || s->written_bytes > 0.75 * all) return 0;
    finding_set(
        f, OUTCOME_WRONG_RESULT, 0,
        "%s: the blocks of all launches write about %.0f bytes and not the last element; the "
        "outputs have %.0f bytes",
        r->where, s->written_bytes, all);
    return 1;
}

/* *compared: every output was. */
static int predict_timed(Loaded *l, TimedContents *c, const Workload *small, const Workload *timed,
                         DeviceTiming *out, int *compared, ChecksPassed *passed, Finding *f,
                         Error *err)
{
    Run r = {0};
    DeviceFault fault = {0};
    unsigned char comparable[TASK_MAX_TENSORS] = {0};
    DeviceSample s = {.n_outputs = l->task->n_outputs, .comparable = comparable};
    int64_t rows = 0;
    *compared = 0;
    if (work_growth(l->task, small, timed, &s, err)) return -1;
    int rc = run_open(&r, l, &c->test, NULL, f, err);
    if (!rc) rc = run_reset(&r, err);
    l->runs++;
    if (!rc) {
        s.outputs = r.memory.outputs;
        s.compared = timed_is_compared(l->task, timed);
        allow_op_lines(&r, &s);
        rc = l->ops->sample(l->device, r.launches, r.n_launches, &s, out, &fault, err);
        if (rc > 0) run_fault(&r, &fault, f);
    }
    if (!rc) rc = timing_makes_sense(out, 0, err);
    log_debug("sampled");
    if (!rc) rc = covers_outputs(&r, &s, f);
    if (!rc) rc = timed_compare(c, &r, comparable, &rows, f, err);
    if (!rc)
        checks_pass(passed, "%s: %llu of %llu blocks, outputs of %lld %s%s", r.where,
                    (unsigned long long)s.sampled, (unsigned long long)s.blocks, (long long)rows,
                    timed_unit(l->task, timed),
                    s.scaled || s.held ? "; scaled from the small workload" : "");
    *compared = rows > 0 && timed_compares_all(l->task, comparable);
    run_close(&r);
    return rc;
}

/* ---- the timed sizes, made short ---- */

/* The harness's own launches need no check. */
static int has_own_launches(const Loaded *l)
{
    return !l->trusted && l->plan->n_kernels > 0;
}

const Workload *predicted_shortened(const Loaded *l, Cases *cases, const Workload *timed,
                                    uint64_t seed)
{
    if (!l->ops->attempt || !has_own_launches(l)) return NULL;
    return cases_shortened(cases, l->task, timed, case_seed(seed, l->task, timed, SHORT_TRIAL));
}

/* The plan has launches for the workload, and their work is not too much. */
static int fits(Loaded *l, const Workload *w)
{
    Finding unused;
    DeviceLaunch *launches = NULL;
    int n, line, ok = 0;
    if (loaded_ops_at(l, w, &unused)) return 0;
    if (!plan_resolve(&l->context, w, NULL, &launches, &n, &line, NULL))
        ok = l->ops->fits(l->device, launches, n);
    free(launches);
    return ok;
}

const Workload *predicted_fitting(Loaded *l, Cases *cases, const Workload *timed, uint64_t seed)
{
    const Workload *w = predicted_shortened(l, cases, timed, seed);
    return w && fits(l, w) ? w : NULL;
}

/* Runs and compares. *too_long: it has not ended. */
static int attempt(Run *r, int *too_long, Finding *f, Error *err)
{
    Loaded *l = r->loaded;
    DeviceFault fault = {0};
    if (run_reset(r, err)) return -1;
    l->runs++;
    int rc = l->ops->attempt(l->device, r->launches, r->n_launches, &fault, err);
    *too_long = rc > 0 && fault.outcome == OUTCOME_TIMEOUT;
    if (*too_long) return 0;
    if (rc > 0) run_fault(r, &fault, f);
    if (!rc) rc = run_inspect(r, f, err);
    if (!rc) rc = run_compare(r, f, err);
    return rc == 1 ? checks_explain_wrong(r, f, err) : rc;
}

/* Variables have their first values, since a sample leaves them in between. A plan that cannot be opened
 * for the workload, such as one whose op lines take too much text, need not be. */
static int run_shortened(Loaded *l, const Case *c, int *too_long, ChecksPassed *passed, Finding *f,
                         Error *err)
{
    Run r = {0};
    int rc = checks_has_variables(l) ? loaded_again(l, f, err) : 0;
    int opened = rc ? rc : run_open(&r, l, c, NULL, f, err);
    if (!rc && opened < 0) rc = -1;
    if (!opened) rc = attempt(&r, too_long, f, err);
    if (!rc && !*too_long) checks_pass(passed, "%s: all blocks", r.where);
    run_close(&r);
    log_debug("run at the timed sizes, made short");
    return rc;
}

/* A comparison that would take too long is left out. */
static int compare_shortened(Loaded *l, Cases *cases, const Workload *timed, uint64_t seed,
                             ChecksPassed *passed, Finding *f, Error *err)
{
    const Workload *w = predicted_fitting(l, cases, timed, seed);
    int too_long = 1, rc = 0;
    if (!has_own_launches(l) || !shortened_has_axis(l->task)) return 0;
    if (w) {
        const Case *c = cases_get(cases, l->task, w, VARIANT_DRAWN,
                                  case_seed(seed, l->task, timed, SHORT_TRIAL), 1.0, err);
        rc = c ? run_shortened(l, c, &too_long, passed, f, err) : -1;
    }
    if (!rc && too_long)
        checks_pass(passed,
                    "no outputs of the timed sizes are compared, with few %s either: too long",
                    l->task->axis_name[l->task->turns]);
    return rc;
}

int predicted_timed(Loaded *l, Cases *cases, const Workload *small, const Workload *timed,
                    uint64_t seed, DeviceTiming *out, ChecksPassed *passed, Finding *f, Error *err)
{
    if (!l->ops->sample) return 0;
    TimedContents *c = cases_timed(cases, l->task, timed, case_seed(seed, l->task, timed, 0), err);
    int compared;
    int rc = c ? predict_timed(l, c, small, timed, out, &compared, passed, f, err) : -1;
    return rc || compared ? rc : compare_shortened(l, cases, timed, seed, passed, f, err);
}

/* ---- unseen inputs ---- */

/* Run on case c under the limits of the timed run. The time is not needed. */
static int run_on(Run *r, const Case *c, ChecksPassed *passed, Finding *f, Error *err)
{
    int rc = run_refill(r, c, 0, err);
    if (!rc) rc = predicted_run(r, NULL, f, err);
    if (!rc) rc = run_inspect(r, f, err);
    if (!rc) rc = run_compare(r, f, err);
    if (!rc) checks_pass(passed, "%s", r->where);
    return rc;
}

/* Predicts on other contents of the timed workload, which are for one candidate. */
static int predict_other(Loaded *l, Cases *cases, const Workload *small, const Workload *timed,
                         uint64_t seed, DeviceTiming *out, ChecksPassed *passed, Finding *f,
                         Error *err)
{
    TimedContents *c =
        cases_timed_once(cases, l->task, timed, case_seed(seed, l->task, timed, 0), err);
    if (!c) return -1;
    DeviceTiming *other = memory_alloc(sizeof *other);
    int compared;
    *other = *out;
    int rc = predict_timed(l, c, small, timed, other, &compared, passed, f, err);
    if (!rc && other->candidate_us[0] > out->candidate_us[0]) *out = *other;
    free(other);
    return rc;
}

/* The inputs are for one candidate: each gives its memory to the next. */
static int run_unseen(Loaded *l, Cases *cases, const Workload *w, uint64_t seed,
                      ChecksPassed *passed, Finding *f, Error *err)
{
    Run r = {0};
    const Case *c;
    int rc = 0;
    for (int i = 0; i < CHECKS_UNSEEN && !rc; i++) {
        rc = checks_unseen(cases, l->task, w, seed, i, &c, err);
        if (rc || !c) continue;
        if (!r.loaded) rc = run_open(&r, l, c, NULL, f, err);
        if (!rc) rc = run_on(&r, c, passed, f, err);
        cases_drop(cases, c);
    }
    run_close(&r);
    return rc;
}

int predicted_unseen(Loaded *l, Cases *cases, const Workload *small, const Workload *timed,
                     uint64_t seed, DeviceTiming *out, ChecksPassed *passed, Finding *f, Error *err)
{
    int rc = run_unseen(l, cases, small, seed, passed, f, err);
    log_debug("run on unseen inputs");
    if (!rc) rc = loaded_again(l, f, err);
    if (!rc && l->ops->sample)
        rc = predict_other(l, cases, small, timed, seed, out, passed, f, err);
    return rc;
}
