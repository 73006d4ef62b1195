/* One unit tells what the others may cost. */
#include "eval/judge/timed_cone.h"

#include <string.h>

#include "base/random.h"
#include "eval/judge/checks.h"

enum { MOST = 32, NEIGHBOURS = 64 }; /* units of an output; bytes of neighbours */

/* Thread-instructions of the first unit's cone, and of those of more units. */
static const double usual_budget = 6e7, usual_more = 2e7, win_budget = 2.5e9, win_more = 1e8;

typedef struct {
    Run *r;
    DeviceSpan spans[TASK_MAX_TENSORS * MOST];
    DeviceCone cone;
    int alone; /* units of a graph are elements */
} Attempt;

/* Bytes of what is compared of an output: a row of its last dimension, since one element may be too small to
 * show that the row's sum is wrong. Of a graph, whose elements are computed one by one, neighbours. */
static size_t unit_bytes(const Case *c, int output)
{
    const TaskTensor *y = &c->task->outputs[output];
    int64_t shape[TASK_MAX_RANK];
    size_t row = dtype_size(y->dtype);
    if (y->rank && !task_shape(c->task, c->workload, y, shape, NULL))
        row *= (size_t)shape[y->rank - 1];
    return c->task->graph && row > NEIGHBOURS ? NEIGHBOURS : row;
}

/* `each` units of each output that is not comparable: one that a source cannot know, the last one, and
 * others. */
static void choose(Attempt *a, const unsigned char *comparable, int each)
{
    const Case *c = a->r->test;
    const Task *t = c->task;
    a->cone = (DeviceCone){.spans = a->spans};
    for (int i = 0; i < t->n_outputs; i++) {
        int alone = a->alone && t->graph;
        size_t size = alone ? dtype_size(t->outputs[i].dtype) : unit_bytes(c, i),
               n = c->output_bytes[i] / size;
        for (int k = 0; k < each && !comparable[i] && n; k++) {
            const uint64_t of[3] = {c->seed, (uint64_t)i, (uint64_t)k};
            size_t at = k == 1 ? n - 1 : (size_t)(random_hash(of, sizeof of) % n);
            a->spans[a->cone.n_spans++] = (DeviceSpan){a->r->memory.outputs[i], at * size, size};
        }
    }
}

/* Variables have their first values. */
static int run_cone(Judgement *j, Attempt *a, double budget, double enough)
{
    Loaded *l = &j->loaded;
    Fault *f = &j->fault;
    int rc = checks_has_variables(l) ? loaded_again(l, f) : 0;
    if (!rc) rc = run_resolve(a->r, f);
    if (rc) return rc;
    a->cone.budget = budget;
    a->cone.enough = enough;
    rc = l->ops->prediction->cone(l->device, a->r->launches, a->r->n_launches, &a->cone, f);
    if (rc > 0) run_fault(a->r, f);
    return rc;
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

/* One unit of each output, of a graph one element alone; then as many more as are cheap. A unit that surely
 * takes more than half of what more units may take is left out: two are looked at instead. */
int timed_cone(Judgement *j, Run *r, int wins, unsigned char *comparable, char why[128])
{
    Attempt a = {.r = r, .alone = 1};
    double budget = wins ? win_budget : usual_budget, two = (wins ? win_more : usual_more) / 2;
    choose(&a, comparable, 1);
    int rc = run_cone(j, &a, budget, two),
        each = a.cone.is_dear ? 2 : more_units(a.cone.used, wins);
    if (!rc && (!a.cone.why[0] || a.cone.is_dear) && each > 1) {
        a.alone = 0;
        choose(&a, comparable, each);
        rc = run_cone(j, &a, budget, 0);
        if (!rc && a.cone.why[0]) {
            a.alone = 1;
            choose(&a, comparable, 1);
            rc = run_cone(j, &a, budget, 0);
        }
    }
    for (int i = 0; i < r->n_outputs; i++) comparable[i] = !comparable[i];
    memcpy(why, a.cone.why, sizeof a.cone.why);
    return rc;
}
