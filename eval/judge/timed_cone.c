/* One unit tells what the others may cost. */
#include "eval/judge/timed_cone.h"

#include <string.h>

#include "base/random.h"
#include "eval/judge/checks.h"

enum { MOST = 32, NEIGHBOURS = 64 }; /* units of an output; bytes of neighbours */

/* Thread-instructions of the first unit's cone, and of those of more units. */
static const double usual_budget = 6e7, usual_more = 2e7, win_budget = 2.5e9, win_more = 1e8;

typedef struct {
    const TimedCone *of;
    DeviceSpan spans[TASK_MAX_TENSORS * MOST];
    DeviceCone cone;
    int alone; /* units of a graph are elements */
} Attempt;

/* Bytes of what is compared of an output: a row of its last dimension, since one element may be too small to
 * show that the row's sum is wrong. Of a graph, whose elements are computed one by one, and of a vector,
 * neighbours. */
static size_t unit_bytes(const Case *c, int output)
{
    const TaskTensor *y = &c->task->outputs[output];
    int64_t shape[TASK_MAX_RANK];
    size_t row = dtype_size(y->dtype);
    if (y->rank && !task_shape(c->task, c->workload, y, shape, NULL))
        row *= (size_t)shape[y->rank - 1];
    return (c->task->graph || y->rank < 2) && row > NEIGHBOURS ? NEIGHBOURS : row;
}

/* `each` units of each output: one that a source cannot know, the last one, and others. */
static void choose(Attempt *a, int each)
{
    const Case *c = a->of->r->test;
    const Task *t = c->task;
    a->cone = (DeviceCone){.spans = a->spans};
    for (int i = 0; i < t->n_outputs; i++) {
        int alone = a->alone && t->graph;
        size_t size = alone ? dtype_size(t->outputs[i].dtype) : unit_bytes(c, i),
               n = c->output_bytes[i] / size;
        for (int k = 0; k < each && a->of->outputs[i] && n; k++) {
            const uint64_t of[3] = {c->seed, (uint64_t)i, (uint64_t)k};
            size_t at = k == 1 ? n - 1 : (size_t)(random_hash(of, sizeof of) % n);
            a->spans[a->cone.n_spans++] =
                (DeviceSpan){a->of->r->memory.outputs[i], at * size, size};
        }
    }
}

/* Variables have their first values. */
static int run_cone(Attempt *a, int each, double enough)
{
    Run *r = a->of->r;
    Loaded *l = &a->of->j->loaded;
    Fault *f = &a->of->j->fault;
    int rc = checks_has_variables(l) ? loaded_again(l, f) : 0;
    if (!rc) rc = run_resolve(r, f);
    if (rc) return rc;
    choose(a, each);
    a->cone.budget = a->of->wins ? win_budget : usual_budget;
    a->cone.enough = enough;
    rc = l->ops->prediction->cone(l->device, r->launches, r->n_launches, &a->cone, f);
    if (rc > 0) run_fault(r, f);
    return rc;
}

static void note(TimedCone *c, const Attempt *a, int rc)
{
    c->is_known = !rc && !a->cone.why[0];
    memcpy(c->why, a->cone.why, sizeof a->cone.why);
}

/* Two units are worth as much again. */
static int more_units(double used, int wins)
{
    double n = (wins ? win_more : usual_more) / (used + 1);
    return n >= MOST                                        ? MOST
           : n >= 2                                         ? (int)n
           : 2 * used <= (wins ? win_budget : usual_budget) ? 2
                                                            : 1;
}

/* One element of a graph is looked at alone. A unit that surely takes more than half of what more units may
 * take is left out: two are looked at instead. */
int timed_cone(TimedCone *c)
{
    Attempt a = {.of = c, .alone = 1};
    int rc = run_cone(&a, 1, (c->wins ? win_more : usual_more) / 2);
    note(c, &a, rc);
    c->more = a.cone.is_dear ? 2 : c->is_known ? more_units(a.cone.used, c->wins) : 1;
    return rc;
}

int timed_cone_more(TimedCone *c, int kept)
{
    Attempt a = {.of = c};
    int rc = run_cone(&a, c->more, 0);
    note(c, &a, rc);
    if (rc || c->is_known) return rc;
    if (kept) {
        c->why[0] = 0;
        return 0;
    }
    a.alone = 1;
    rc = run_cone(&a, 1, 0);
    note(c, &a, rc);
    return rc;
}
