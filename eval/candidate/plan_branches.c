/* A condition is an expression over the axes of the task. */
#include "eval/candidate/plan_branches.h"

#include <string.h>

int plan_takes(const Plan *p, const Task *t, const Workload *w, const PlanStep *s, Error *err)
{
    Error why;
    TaskScope scope = {t, w};
    int64_t holds;
    if (s->branch < 0) return 1;
    const PlanBranch *b = &p->branches[s->branch];
    if (!expr_eval(b->taken, strlen(b->taken), task_lookup, &scope, &holds, &why))
        return holds != 0;
    return error_set(err, ERROR_INVALID, "line %d: the condition %s: %s", b->line, b->taken,
                     why.text);
}
