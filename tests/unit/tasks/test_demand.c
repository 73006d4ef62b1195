/* Elements of graphs that are computed alone have the values of the whole reference: of every task of
 * KernelBench and the composed ones, at its cheapest check sizes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "tasks/graph/demand.h"
#include "tasks/task_graph.h"
#include "tests/fixture_path.h"

enum { ASKED = 24 };
static const double most_flops = 2e8; /* of a reference */

typedef struct {
    double *in[TASK_MAX_TENSORS], *out[TASK_MAX_TENSORS];
    float *held[TASK_MAX_TENSORS];
    int holds;
} Whole;

static int fetch(void *of, int input, int64_t from, int64_t n, double *dst, Error *err)
{
    const Whole *w = of;
    (void)err;
    memcpy(dst, w->in[input] + from, (size_t)n * sizeof *dst);
    return 0;
}

static int hold(void *of, int input, int64_t from, int64_t n, const float **all, Error *err)
{
    Whole *w = of;
    (void)err;
    for (int64_t k = from; k < from + n; k++) w->held[input][k] = (float)w->in[input][k];
    w->holds++;
    *all = w->held[input];
    return 0;
}

static const Workload *cheapest(const Task *t)
{
    const Workload *best = NULL;
    double least = most_flops, bytes, flops;
    for (int i = 0; i < t->n_workloads; i++)
        if (t->workloads[i].role == ROLE_CHECK &&
            !task_cost(t, &t->workloads[i], &bytes, &flops, NULL) && flops + bytes < least) {
            least = flops + bytes;
            best = &t->workloads[i];
        }
    return best;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Places of an output, the last one among them, sorted, each once. */
static int64_t ask(uint64_t seed, int64_t size, int64_t *at)
{
    int64_t n = 0;
    for (int64_t k = 0; k < ASKED && size; k++) {
        uint64_t drawn[2] = {seed, (uint64_t)k};
        at[k] = k ? (int64_t)(random_hash(drawn, sizeof drawn) % (uint64_t)size) : size - 1;
    }
    if (!size) return 0;
    qsort(at, ASKED, sizeof *at, ascending);
    for (int64_t k = 0; k < ASKED; k++)
        if (!n || at[n - 1] != at[k]) at[n++] = at[k];
    return n;
}

static void compare(const Task *t, const Demand *d, const Whole *w, int output)
{
    const DemandedOutput *y = &d->output[output];
    double squares = 1e-300;
    for (int64_t k = 0; k < y->n; k++) {
        double v = w->out[output][y->at[k]];
        if (isfinite(v)) squares += v * v / (double)y->n;
    }
    for (int64_t k = 0; k < y->n; k++) {
        double want = w->out[output][y->at[k]], got = y->value[k];
        if (got == want || (isnan(got) && isnan(want)) ||
            fabs(got - want) <= 1e-12 * (fabs(want) + sqrt(squares)))
            continue;
        fail_msg("%s: output %d, element %lld: %.17g, expected %.17g", t->name, output,
                 (long long)y->at[k], got, want);
    }
}

/* Floats that are held give the same bits. */
static void check_held(const Task *t, const Demand *d)
{
    DemandedOutput output[GRAPH_MAX_OUTPUTS];
    Error err;
    Demand held = *d;
    held.output = output;
    held.inputs.hold = hold;
    for (int i = 0; i < t->n_outputs; i++) {
        output[i] = d->output[i];
        output[i].value = memory_array(ASKED, sizeof(double));
    }
    if (graph_demand(&held, &err)) fail_msg("%s: %s", t->name, err.text);
    for (int i = 0; i < t->n_outputs; i++) {
        assert_memory_equal(output[i].value, d->output[i].value,
                            (size_t)output[i].n * sizeof(double));
        free(output[i].value);
    }
}

/* Returns how often floats were held. */
static int check_task(Task *t, const Workload *w)
{
    Whole all = {0};
    DemandedOutput output[GRAPH_MAX_OUTPUTS];
    int64_t at[GRAPH_MAX_OUTPUTS][ASKED];
    GraphBound *b;
    Error err;
    size_t n;
    const TaskCase of = {t, w, VARIANT_DRAWN, 7, 1};
    if (task_graph_bind(t, w, &b, &err)) fail_msg("%s: %s", t->name, err.text);
    for (int i = 0; i < t->n_inputs; i++) {
        task_elements(t, w, &t->inputs[i], &n, &err);
        all.in[i] = memory_array(n + 1, sizeof(double));
        all.held[i] = memory_array(n + 1, sizeof(float));
        task_draw_wide(&of, i, all.in[i], &err);
    }
    for (int i = 0; i < t->n_outputs; i++) {
        task_elements(t, w, &t->outputs[i], &n, &err);
        all.out[i] = memory_array(n + 1, sizeof(double));
        output[i].at = at[i];
        output[i].n = ask((uint64_t)i, (int64_t)n, at[i]);
        output[i].value = memory_array(ASKED, sizeof(double));
    }
    Demand d = {.b = b,
                .inputs = {&all, fetch, NULL},
                .output = output,
                .max_work = 1e12,
                .max_elements = 1e9};
    if (task_reference(t, w, (const double *const *)all.in, all.out, &err) ||
        graph_demand(&d, &err))
        fail_msg("%s: %s", t->name, err.text);
    for (int i = 0; i < t->n_outputs; i++) compare(t, &d, &all, i);
    check_held(t, &d);
    for (int i = 0; i < t->n_outputs; i++) free(output[i].value), free(all.out[i]);
    for (int i = 0; i < t->n_inputs; i++) free(all.in[i]), free(all.held[i]);
    graph_bound_free(b);
    return all.holds;
}

static void check_set(const char *only, int least)
{
    TaskSet set;
    Error err;
    int checked = 0, holds = 0;
    if (taskset_load(fixture_path("tasks"), only, &set, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < set.n; i++) {
        const Workload *w = set.tasks[i]->graph ? cheapest(set.tasks[i]) : NULL;
        if (w) holds += check_task(set.tasks[i], w);
        checked += w != NULL;
    }
    print_message("# %s: %d tasks\n", only, checked);
    assert_true(checked >= least && holds > 0);
    taskset_release(&set);
}

static void test_kernelbench(void **state)
{
    (void)state;
    check_set("kernelbench/level1", 90);
    check_set("kernelbench/level2", 90);
    check_set("kernelbench/level3", 25);
}

static void test_composed(void **state)
{
    (void)state;
    check_set("composed", 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernelbench),
                                       cmocka_unit_test(test_composed)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
