/* The bound of a tolerance by those that were measured when the task was derived. */
#include "eval/judge/contents/drawn_tolerance.h"

#include <math.h>

static const double small_share = 1e-2;

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

int drawn_tolerance_tells(Tolerance by, const double *expected, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) sum += expected[i];
    double mean = n > 1 ? sum / (double)n : 0;
    for (size_t i = 0; i < n; i++) squares += (expected[i] - mean) * (expected[i] - mean);
    double spread = sqrt(squares / (double)n);
    return isfinite(spread) && by.atol <= small_share * spread;
}
