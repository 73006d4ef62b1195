/* The positions are chosen in the upper quarter of those that cost little enough. */
#include "eval/judge/contents/shortened.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "base/words.h"

/* Limits of task_cost: of all positions, and of what all but one add. Where not one position is cheap, as in
 * recurrent layers, FEW positions may take `dear` times the flops. */
static const double most_bytes = 6.4e7, most_flops = 3.5e7, most_added = 4e6, dear = 12;
enum { FEW = 4 };
/* Sums to a scalar may add so many elements: an error that depends on the length may begin late. */
static const double most_added_sum = 6e6;

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

/* Is the axis, by itself, a dimension of an input? Those of parameters are a module's own sizes. */
static int is_of_inputs(const Task *t, int axis)
{
    for (int i = 0; i < t->n_inputs; i++)
        for (int k = 0; k < t->inputs[i].rank && !t->inputs[i].parameter; k++)
            if (!strcmp(t->inputs[i].shape[k], t->axis_name[axis])) return 1;
    return 0;
}

int shortened_axes(const Task *t, const Workload *timed, Shortening out[SHORTENED_AXES])
{
    int n = 0, axis[SHORTENED_AXES];
    if (shortened_has_axis(t)) axis[n++] = t->rotates;
    for (int i = 0; i < t->n_axes && t->graph && t->rotates < 0; i++) {
        int at = n;
        if (!is_of_inputs(t, i)) continue;
        while (at && timed->axis[axis[at - 1]] < timed->axis[i]) at--;
        if (at == SHORTENED_AXES) continue;
        if (at + 1 < SHORTENED_AXES) axis[at + 1] = axis[at];
        axis[at] = i;
        n += n < SHORTENED_AXES;
    }
    for (int i = 0; i < n; i++)
        out[i] = (Shortening){t, timed, axis[i], i && task_is_scalar(t) ? axis[0] : -1};
    return n;
}

static int is_cheap(const Task *t, const Workload *w, int axis, double flops_limit)
{
    Workload one = *w;
    double bytes, flops, least, ignored, added = task_is_scalar(t) ? most_added_sum : most_added;
    one.axis[axis] = 1;
    return !task_cost(t, w, &bytes, &flops, NULL) && !task_cost(t, &one, &least, &ignored, NULL) &&
           bytes <= most_bytes && flops <= flops_limit && bytes - least <= added;
}

/* The most positions that are cheap enough, at most `high`: costs grow with them. */
static int64_t most_within(const Task *t, Workload *w, int axis, int64_t high, double flops_limit)
{
    int64_t *at = &w->axis[axis], low = 0;
    while (low < high) {
        *at = low + (high - low + 1) / 2;
        if (is_cheap(t, w, axis, flops_limit))
            low = *at;
        else
            high = *at - 1;
    }
    return low;
}

static int64_t most(const Task *t, Workload *w, int axis)
{
    int64_t all = w->axis[axis], n = most_within(t, w, axis, all, most_flops);
    return n ? n : most_within(t, w, axis, all < FEW ? all : FEW, dear * most_flops);
}

/* The timed workload but for the other axis. */
static Workload base_of(const Shortening *s)
{
    Workload w = *s->timed;
    if (s->also >= 0 && w.axis[s->also] > SHORTENED_LONG) w.axis[s->also] = SHORTENED_LONG;
    return w;
}

int64_t shortened_positions(const Shortening *s, uint64_t seed)
{
    const Task *t = s->task;
    Workload w = base_of(s);
    int64_t *at = &w.axis[s->axis], all = *at, limit = most(t, &w, s->axis), unit = 1;
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

int shortened_make(const Shortening *s, int64_t positions, Workload *out, Error *err)
{
    const Task *t = s->task;
    const TaskCase of = {t, s->timed, VARIANT_DRAWN, 0, 1.0};
    *out = base_of(s);
    out->note = NULL;
    out->atol = NULL;
    out->axis[s->axis] = positions;
    if (task_is_scalar(t) && t->graph) return 0;
    out->atol = memory_array((size_t)t->n_outputs * ATOL_CASES, sizeof *out->atol);
    for (int i = 0; i < t->n_outputs; i++) {
        size_t n, all;
        Tolerance by;
        if (task_elements(t, out, &t->outputs[i], &n, err) ||
            task_elements(t, s->timed, &t->outputs[i], &all, err) ||
            task_tolerance(&of, i, &by, err))
            return -1;
        out->atol[i * ATOL_CASES + AT_SCALE_1] = by.atol * shortened_share((double)n, (double)all);
    }
    return 0;
}
