/* The positions are chosen in the upper quarter of those that cost little enough. */
#include "eval/judge/contents/shortened.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/words.h"

/* Of task_cost: of all positions, and what all but one of them add. */
static const double most_bytes = 6.4e7, most_flops = 3.5e7, most_added = 4e6;

int shortened_has_axis(const Task *t)
{
    int found = 0;
    if (t->rotates < 0) return 0;
    for (int i = 0; i < t->n_inputs + t->n_outputs; i++) {
        const TaskTensor *x = i < t->n_inputs ? &t->inputs[i] : &t->outputs[i - t->n_inputs];
        for (int k = 0; k < x->rank; k++) {
            int is_first = !k && task_rotates(t, x);
            found |= is_first && i >= t->n_inputs;
            if (!is_first && word_in(x->shape[k], t->axis_name[t->rotates])) return 0;
        }
    }
    return found;
}

static int is_cheap(const Task *t, const Workload *w)
{
    Workload one = *w;
    double bytes, flops, least, ignored;
    one.axis[t->rotates] = 1;
    return !task_cost(t, w, &bytes, &flops, NULL) && !task_cost(t, &one, &least, &ignored, NULL) &&
           bytes <= most_bytes && flops <= most_flops && bytes - least <= most_added;
}

/* The most positions that are cheap enough: costs grow with them. */
static int64_t most(const Task *t, Workload *w)
{
    int64_t *at = &w->axis[t->rotates], low = 0, high = *at;
    while (low < high) {
        *at = low + (high - low + 1) / 2;
        if (is_cheap(t, w))
            low = *at;
        else
            high = *at - 1;
    }
    return low;
}

int64_t shortened_positions(const Task *t, const Workload *timed, uint64_t seed)
{
    Workload w = *timed;
    if (!shortened_has_axis(t)) return 0;
    int64_t *at = &w.axis[t->rotates], all = *at, limit = most(t, &w), unit = 1;
    if (limit == all || !limit) return limit;
    while (all % (2 * unit) == 0 && 2 * unit <= limit / 4) unit *= 2;
    int64_t last = limit / unit, first = (3 * last + 3) / 4, n = last - first + 1;
    int64_t from = (int64_t)(random_hash(&seed, sizeof seed) % (uint64_t)n);
    for (int64_t i = 0; i < n; i++) {
        *at = unit * (first + (from + i) % n);
        if (!task_allows(t, &w, NULL)) return *at;
    }
    for (*at = limit; *at; --*at)
        if (!task_allows(t, &w, NULL)) return *at;
    return 0;
}

double shortened_share(double n, double all)
{
    double share = sqrt(log(2 + n) / log(2 + fmax(n, all)));
    return fmax(SHARE_LEAST, share);
}

int shortened_make(const Task *t, const Workload *timed, int64_t positions, Workload *out,
                   Error *err)
{
    const TaskCase of = {t, timed, VARIANT_DRAWN, 0, 1.0};
    *out = *timed;
    out->note = NULL;
    out->axis[t->rotates] = positions;
    out->atol = memory_array((size_t)t->n_outputs * ATOL_CASES, sizeof *out->atol);
    for (int i = 0; i < t->n_outputs; i++) {
        size_t n, all;
        Tolerance by;
        if (task_elements(t, out, &t->outputs[i], &n, err) ||
            task_elements(t, timed, &t->outputs[i], &all, err) || task_tolerance(&of, i, &by, err))
            return -1;
        out->atol[i * ATOL_CASES + AT_SCALE_1] = by.atol * shortened_share((double)n, (double)all);
    }
    return 0;
}
