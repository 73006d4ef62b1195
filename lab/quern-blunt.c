/* quern-blunt: which timed tolerances say little of an output. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "eval/judge/contents/timed_contents.h"
#include "tasks/derive/element_limits.h"
#include "tasks/derive/judged.h"
#include "tasks/graph/demand.h"
#include "tasks/task_graph.h"

/* Elements of which the spread is known, or fewer where these cost too much. */
enum { MOST = 64, SEED = 7 };
static const double most_work = 4e8, most_elements = 1 << 27;

typedef struct {
    int64_t n, at[MOST];
    double value[MOST];
} Sample;

/* Sizes with the longest axis halved; -1: there are none. A mean of fewer elements has the same size, and a
 * sum less. */
static int halve(const Task *t, Workload *w)
{
    int longest = 0;
    for (int i = 1; i < t->n_axes; i++)
        if (w->axis[i] > w->axis[longest]) longest = i;
    for (int64_t to = w->axis[longest] / 2; to > w->axis[longest] / 4 && to > 0; to--) {
        Workload next = *w;
        next.axis[longest] = to;
        if (task_allows(t, &next, NULL)) continue;
        *w = next;
        return 0;
    }
    return -1;
}

static int fetch(void *of, int input, int64_t from, int64_t n, double *dst, Error *err)
{
    return timed_fetch(of, input, from, n, dst, err);
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* n places of `all`, sorted, each once. */
static void choose(Sample *s, int64_t all, int64_t n)
{
    Random r;
    random_init(&r, SEED, (uint64_t)n);
    s->n = 0;
    for (int64_t i = 0; i < n; i++)
        s->at[i] = all <= n ? i : (int64_t)random_below(&r, (uint64_t)all);
    if (all < n) n = all;
    qsort(s->at, (size_t)n, sizeof *s->at, ascending);
    for (int64_t i = 0; i < n; i++)
        if (!s->n || s->at[s->n - 1] != s->at[i]) s->at[s->n++] = s->at[i];
}

/* Fills the values of one output's sample, alone. As graph_demand. */
static int expect(TimedContents *c, const GraphBound *b, int output, Sample *s, Error *err)
{
    DemandedOutput all[GRAPH_MAX_OUTPUTS] = {0};
    all[output] = (DemandedOutput){s->n, s->at, s->value};
    Demand d = {.b = b,
                .inputs = {c, fetch, NULL},
                .output = all,
                .max_work = most_work,
                .max_elements = most_elements};
    return graph_demand(&d, err);
}

/* The sample of one output at w's sizes. 1: even two elements cost too much. */
static int sample(Task *t, const Workload *w, int output, Sample *s, Error *err)
{
    GraphBound *b;
    size_t n;
    int rc = 1;
    if (task_elements(t, w, &t->outputs[output], &n, err) || task_graph_bind(t, w, &b, err))
        return -1;
    Judged *judged = judged_new();
    TimedContents *c = timed_contents_new(&(TimedOf){t, w, judged}, SEED, err);
    judged_free(judged);
    for (int64_t k = MOST; c && k >= 2 && rc > 0; k /= 4) {
        choose(s, (int64_t)n, k);
        rc = expect(c, b, output, s, err);
    }
    graph_bound_free(b);
    if (!c) return -1;
    timed_contents_free(c);
    return rc;
}

/* The tolerance of the drawn contents of a workload. */
static int tolerance_of(const Task *t, const Workload *w, int output, Tolerance *by, Error *err)
{
    const TaskCase drawn = {t, w, VARIANT_DRAWN, SEED, 1};
    return task_tolerance(&drawn, output, by, err);
}

/* The contents of a check, drawn, and what the reference gives of them. */
typedef struct {
    double *in[TASK_MAX_TENSORS], *out[TASK_MAX_TENSORS];
} Drawn;

static void drawn_release(Drawn *d)
{
    for (int i = 0; i < TASK_MAX_TENSORS; i++) free(d->in[i]), free(d->out[i]);
}

static int draw(Task *t, const Workload *w, Drawn *d, Error *err)
{
    const TaskCase drawn = {t, w, VARIANT_DRAWN, SEED, 1};
    size_t n;
    for (int i = 0; i < t->n_inputs; i++) {
        if (task_elements(t, w, &t->inputs[i], &n, err)) return -1;
        d->in[i] = memory_array(n + 1, sizeof(double));
        if (task_draw_wide(&drawn, i, d->in[i], err)) return -1;
    }
    for (int i = 0; i < t->n_outputs; i++) {
        if (task_elements(t, w, &t->outputs[i], &n, err)) return -1;
        d->out[i] = memory_array(n + 1, sizeof(double));
    }
    return task_reference(t, w, (const double *const *)d->in, d->out, err);
}

/* How a check tells an output's errors: by each element, by all together, or not. */
static int way_of_check(Task *t, const Workload *w, int output, const char **way, Error *err)
{
    const TaskCase drawn = {t, w, VARIANT_DRAWN, SEED, 1};
    ElementLimits *limits[TASK_MAX_TENSORS] = {0};
    Drawn d = {0};
    Tolerance by;
    size_t n;
    *way = NULL;
    int rc = task_elements(t, w, &t->outputs[output], &n, err) || draw(t, w, &d, err) ||
             tolerance_of(t, w, output, &by, err) ||
             element_limits(&drawn, (const double *const *)d.in, (const double *const *)d.out,
                            limits, err);
    const ElementLimits *e = rc ? NULL : limits[output];
    if (!rc && n > 1 && by.atol > 0 && task_tolerance_tells(by.atol, d.out[output], n))
        *way = "each element";
    else if (e && task_tolerance_tells(sqrt(e->most) * e->unit, d.out[output], n))
        *way = "all elements together";
    for (int i = 0; i < t->n_outputs; i++) element_limits_free(limits[i]);
    drawn_release(&d);
    return rc ? -1 : 0;
}

/* The first check that tells the errors of an output. */
static int other_way(Task *t, int output, const char **way, char *at, size_t size, Error *err)
{
    *way = NULL;
    for (int i = t->n_workloads - 1; i >= 0 && !*way; i--) {
        const Workload *w = &t->workloads[i];
        if (w->role != ROLE_CHECK) continue;
        if (way_of_check(t, w, output, way, err)) return -1;
        task_workload_text(t, w, at, size);
    }
    return 0;
}

/* Prints an output whose tolerance is wide. 1: no check tells its errors, and the task is judged by them. */
static int show_blunt(Task *t, int output, double atol, const Sample *s, Error *err)
{
    const char *way = NULL;
    char at[200] = "";
    if (!t->degenerate && other_way(t, output, &way, at, sizeof at, err)) return -1;
    printf("%-48s %-12s atol %-9.3g of %lld elements; ", t->name, t->outputs[output].name, atol,
           (long long)s->n);
    if (way)
        printf("by %s at %s\n", way, at);
    else
        puts(t->degenerate ? "degenerate" : "NO OTHER");
    return !way && !t->degenerate;
}

/* Shows an output whose tolerance at the timed size is wide. As show_blunt. */
static int show(Task *t, int output, int all, Error *err)
{
    Workload w = *task_workload(t, ROLE_TIME);
    Tolerance by;
    Sample s = {0};
    int rc = tolerance_of(t, task_workload(t, ROLE_TIME), output, &by, err);
    if (rc) return -1;
    while ((rc = sample(t, &w, output, &s, err)) > 0 && !halve(t, &w))
        ;
    if (rc < 0) return -1;
    int blunt = rc || !task_tolerance_tells(by.atol, s.value, (size_t)s.n);
    if (!blunt && all)
        printf("%-48s %-12s atol %-9.3g tells\n", t->name, t->outputs[output].name, by.atol);
    blunt = blunt ? show_blunt(t, output, by.atol, &s, err) : 0;
    fflush(stdout);
    return blunt;
}

/* The number of blunt tolerances of a task, or -1. */
static int task_blunt(Task *t, int all, Error *err)
{
    int blunt = 0;
    for (int i = 0; i < t->n_outputs && t->graph && task_workload(t, ROLE_TIME); i++) {
        if (t->outputs[i].dtype != DTYPE_F32) continue;
        int one = show(t, i, all, err);
        if (one < 0) return -1;
        blunt += one;
    }
    return blunt;
}

int main(int argc, char **argv)
{
    const char *root = NULL, *words[1] = {"all"};
    int all = 0, blunt = 0;
    const Flag flags[] = {{"task-root", FLAG_TEXT, &root, "folder of tasks"},
                          {"all", FLAG_BOOL, &all, "print the others, too"},
                          {0}};
    const FlagSpec spec = {.program = "quern-blunt",
                           .synopsis = "[SET]",
                           .about =
                               "Print the float32 outputs whose tolerance at the timed size is "
                               "above 1% of the spread of their own elements, of which some are "
                               "computed, and the check that tells their errors in its place: by "
                               "each element, where sums are shorter, or by all together. Exit 1 "
                               "if an output has none.",
                           .flags = flags,
                           .max_words = 1};
    flags_parse(&spec, argc, argv, words);
    TaskSet set;
    Error err;
    if (taskset_load(root, words[0], &set, &err)) log_die(&err);
    for (int i = 0; i < set.n; i++) {
        int one = task_blunt(set.tasks[i], all, &err);
        if (one < 0) log_die(&err);
        blunt += one;
    }
    taskset_release(&set);
    return log_close(blunt > 0);
}
