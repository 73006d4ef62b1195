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
#include "tasks/derive/judged.h"
#include "tasks/graph/demand.h"
#include "tasks/task_graph.h"

/* Elements of which the spread is known, or fewer where these cost too much. */
enum { MOST = 64, SEED = 7 };
static const double most_work = 4e8, most_elements = 1 << 27, BLUNT = 1e-2;

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

/* The standard deviation; of one element its size. */
static double spread_of(const Sample *s)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < s->n; i++) sum += s->value[i];
    double mean = s->n > 1 ? sum / (double)s->n : 0;
    for (int64_t i = 0; i < s->n; i++) squares += (s->value[i] - mean) * (s->value[i] - mean);
    return sqrt(squares / (double)s->n);
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

/* Prints an output. Returns whether its tolerance is blunt, or -1. */
static int show(Task *t, int output, int all, Error *err)
{
    Workload w = *task_workload(t, ROLE_TIME);
    const TaskCase timed = {t, task_workload(t, ROLE_TIME), VARIANT_DRAWN, SEED, 1};
    Tolerance by;
    Sample s = {0};
    int rc = task_tolerance(&timed, output, &by, err);
    if (rc) return -1;
    while ((rc = sample(t, &w, output, &s, err)) > 0 && !halve(t, &w))
        ;
    if (rc < 0) return -1;
    double spread = rc ? NAN : spread_of(&s);
    int blunt = !(by.atol <= BLUNT * spread);
    if (all || blunt)
        printf("%-48s %-16s atol %-9.3g spread %-9.3g %.2f%% (%lld elements)\n", t->name,
               t->outputs[output].name, by.atol, spread, 100 * by.atol / spread, (long long)s.n);
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
                               "above 1% of the spread of their "
                               "own elements, of which some are computed. Exit 1 if there are any.",
                           .flags = flags,
                           .max_words = 1};
    flags_parse(&spec, argc, argv, words);
    log_open("quern-blunt");
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
