/* The bound of a tolerance by those that were measured when the task was derived. */
#include "eval/judge/contents/drawn_tolerance.h"

int drawn_tolerance(Judged *j, const TaskCase *c, int output, Tolerance *out)
{
    const Task *t = c->task;
    int found = 0;
    if (!t->graph || c->workload->atol || c->variant != VARIANT_DRAWN) return -1;
    for (int i = 0; i < t->n_workloads; i++) {
        TaskCase own = *c;
        Tolerance by = {0};
        own.workload = &t->workloads[i];
        if (!own.workload->atol || judged_listed(j, &own, output, &by, NULL)) continue;
        if (!found++ || by.atol > out->atol) *out = by;
    }
    return found ? 0 : -1;
}
