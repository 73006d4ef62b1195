/* Errors by comparisons without a tolerance. */
#include "eval/judge/errors.h"

#include <math.h>
#include <stdio.h>

#include "eval/judge/baseline.h"
#include "eval/judge/checks.h"
#include "eval/judge/predicted_timing.h"

/* The workload that errors are of, whatever sizes a candidate's branches need. */
static const Workload *measured_at(const Judgement *j)
{
    TimedPair own[TASK_MAX_TIMED];
    task_timed(j->task, own);
    return judgement_is_predicted(j) ? own[0].small : j->pairs[0].timed;
}

/* The largest difference of an output that is allowed. */
static double allowed(const Judgement *j, const Errors *eager, int output)
{
    const ErrorBudget *b = &j->task->budget;
    return b->times > 0 ? b->times * fmax(eager->of[output], eager->ulp[output]) : b->absolute;
}

/* That of the first pair. */
static int need_eager(Judgement *j, const Errors **out)
{
    Judgement *own;
    const Workload *timed = j->timed;
    j->timed = j->pairs[0].timed;
    int rc = baseline_need(j);
    j->timed = timed;
    if (rc) return -1;
    own = &j->baseline->own;
    *out = &own->errors;
    return own->errors.known
               ? 0
               : error_set(&j->fault.error, ERROR_INVALID, "the baseline's errors are not known");
}

int step_budget(Judgement *j)
{
    double by[TASK_MAX_TENSORS];
    const Errors *eager;
    if (!budget_is_set(&j->task->budget)) return 0;
    if (need_eager(j, &eager)) return -1;
    const Case *c = judgement_case(j, measured_at(j));
    if (!c) return -1;
    if (cases_loosened(j->evaluator->cases, j->task)) return 0;
    for (int i = 0; i < j->task->n_outputs; i++)
        by[i] = fmin(fmax(allowed(j, eager, i) / c->tolerance[i].atol, 1), ERRORS_LOOSEST);
    cases_loosen(j->evaluator->cases, j->task, by);
    return 0;
}

/* One more run of the candidate. */
static int measure_own(Judgement *j)
{
    Run r = {0};
    Fault *f = &j->fault;
    const Case *c = judgement_case(j, measured_at(j));
    if (!c) return -1;
    int rc = run_open(&r, &j->loaded, c, NULL, f);
    if (!rc) rc = judgement_is_predicted(j) ? predicted_run(&r, NULL, f) : run_launch(&r, f);
    if (!rc) rc = run_compare(&r, f);
    if (rc == 1) rc = checks_explain_wrong(&r, f);
    if (!rc) rc = run_errors(&r, &j->errors, &f->error);
    run_close(&r);
    return rc;
}

/* The output that uses most of its budget; without one, most of eager's error. */
static int worst_of(const Judgement *j, const Errors *eager)
{
    int worst = 0, is_set = budget_is_set(&j->task->budget);
    double most = -1;
    for (int i = 0; i < j->task->n_outputs; i++) {
        double by = is_set ? allowed(j, eager, i) : fmax(eager->of[i], eager->ulp[i]);
        double share = j->errors.of[i] / fmax(by, 1e-300);
        if (share > most) worst = i, most = share;
    }
    return worst;
}

int step_error(Judgement *j)
{
    Verdict *v = &j->verdict;
    const Errors *eager;
    char at[200];
    int rc = need_eager(j, &eager);
    if (!rc && !j->errors.known) rc = measure_own(j);
    if (rc) return rc;
    int i = worst_of(j, eager), is_set = budget_is_set(&j->task->budget);
    snprintf(v->error_of, sizeof v->error_of, "%s", j->task->outputs[i].name);
    v->own_error = j->errors.of[i];
    v->eager_error = eager->of[i];
    v->budget = is_set ? allowed(j, eager, i) : 0;
    if (!is_set || v->own_error <= fmax(v->budget, j->errors.ulp[i])) return 0;
    task_workload_text(j->task, measured_at(j), at, sizeof at);
    return fault_set(&j->fault, OUTCOME_WRONG_RESULT, 0,
                     "%s: the largest error of %s is %.3g, and the budget TOLERANCE allows %.3g: "
                     "eager PyTorch's own error is %.3g",
                     at, v->error_of, v->own_error, v->budget, v->eager_error);
}
