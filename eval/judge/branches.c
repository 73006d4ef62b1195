/* Conditions on sizes, and the search for sizes that meet them. */
#include "eval/judge/branches.h"

#include "eval/judge/contents/drawn_sizes.h"

static const double most_work = 4e7, some_work = 4e6; /* of drawn_sizes_work */

static int launches_at(const Judgement *j, const Workload *w, const PlanStep *s)
{
    return plan_trips(&j->loaded.context, w, s) > 0;
}

/* Any step launches the kernel of s at w; an op line launches its own. */
static int runs_at(const Judgement *j, const Workload *w, const PlanStep *s)
{
    const Plan *p = &j->candidate.plan;
    if (s->kernel < 0) return launches_at(j, w, s);
    for (int i = 0; i < p->n_steps; i++)
        if (p->steps[i].kernel == s->kernel && launches_at(j, w, &p->steps[i])) return 1;
    return 0;
}

/* A step with a kernel, or one of a branch: others launch at all sizes. */
static int varies(const PlanStep *s)
{
    return s->kernel >= 0 || s->branch >= 0;
}

/* A step of the timed workload that does not run at w; NULL: there is none. */
static const PlanStep *missing_at(const Judgement *j, const Workload *w)
{
    const Plan *p = &j->candidate.plan;
    for (int i = 0; i < p->n_steps; i++) {
        const PlanStep *s = &p->steps[i];
        if (varies(s) && launches_at(j, j->timed, s) && !runs_at(j, w, s)) return s;
    }
    return NULL;
}

static int has_all(void *j, const Workload *w)
{
    return !missing_at(j, w);
}

/* *out stays as it is where nothing is found. */
static int find(Judgement *j, const DrawnCondition *c, double work, const Workload **out)
{
    Workload w;
    if (drawn_sizes_where(j->task, j->evaluator->seed, c, work, &w)) return 1;
    *out = cases_sizes(j->evaluator->cases, j->task, &w);
    return 0;
}

static int refuse(Judgement *j, const PlanStep *s)
{
    const Plan *p = &j->candidate.plan;
    int line = s->loops || s->branch < 0 ? s->loop_line : p->branches[s->branch].line;
    return fault_set(
        &j->fault, OUTCOME_PLAN_ERROR, line,
        "line %d: %s that a check can have: %s%s cannot be checked. Let it begin at a smaller size "
        "(up to the timed one, within %.0e words and flops)",
        line,
        s->loops ? "the range of this for is empty at all sizes"
                 : "this branch is taken at no sizes",
        s->kernel >= 0 ? "kernel " : "an op line", s->kernel >= 0 ? p->kernels[s->kernel] : "",
        most_work);
}

int branches_small(Judgement *j)
{
    const PlanStep *s = missing_at(j, j->small);
    const DrawnCondition all = {has_all, j, 0, -1};
    return s && find(j, &all, most_work, &j->small) ? refuse(j, s) : 0;
}

int branches_checked(const Judgement *j, const PlanStep *s)
{
    const Task *t = j->task;
    if (!s->loops && s->branch < 0) return 1;
    for (int i = 0; i < t->n_workloads; i++)
        if (t->workloads[i].role == ROLE_CHECK && launches_at(j, &t->workloads[i], s)) return 1;
    return 0;
}

typedef struct {
    const Judgement *j;
    const PlanStep *step;
} Branch;

static int is_taken(void *branch, const Workload *w)
{
    const Branch *b = branch;
    return launches_at(b->j, w, b->step);
}

/* Does a step have another condition than the one before it? */
static int branches_begins(const Judgement *j, const PlanStep *s)
{
    return s == j->candidate.plan.steps || s->loops || s[-1].loops || s[-1].branch != s->branch;
}

int branches_sizes(Judgement *j, const PlanStep *s, const Workload **out)
{
    Branch b = {j, s};
    const DrawnCondition taken = {is_taken, &b, 0, -1};
    *out = NULL;
    if (!varies(s) || branches_checked(j, s) || !branches_begins(j, s)) return 0;
    return find(j, &taken, most_work, out) ? refuse(j, s) : 0;
}

const Workload *branches_wide(Judgement *j, const PlanStep *s, int axis)
{
    Branch b = {j, s};
    const DrawnCondition taken = {is_taken, &b, 1, axis};
    const Workload *w = NULL;
    if (s->branch < 0 || !branches_begins(j, s) || launches_at(j, task_largest_check(j->task), s))
        return NULL;
    return find(j, &taken, some_work, &w) && find(j, &taken, most_work, &w) ? NULL : w;
}
