/* Compares the references of tasks that were derived from graphs with those written by hand: drive_references
 * FOLDER, with a task in FOLDER for each of tasks/. tests/shell/derive.t derives them and calls it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "tasks/task.h"

static double **arrays(const Task *t, const Workload *w, const TaskTensor *x, int n, size_t *count)
{
    double **out = memory_array((size_t)n, sizeof *out);
    Error err;
    for (int i = 0; i < n; i++) {
        if (task_elements(t, w, &x[i], &count[i], &err)) log_die(&err);
        out[i] = memory_array(count[i], sizeof(double));
    }
    return out;
}

static void release(double **list, int n)
{
    for (int i = 0; i < n; i++) free(list[i]);
    free(list);
}

/* Returns the number of elements that differ. */
static size_t differences(Task *graph, Task *hand, const Workload *w)
{
    size_t in_n[8], out_n[1], bad = 0;
    Error err;
    double **in = arrays(graph, w, graph->inputs, graph->n_inputs, in_n),
           **a = arrays(graph, w, graph->outputs, 1, out_n),
           **b = arrays(hand, w, hand->outputs, 1, out_n);
    for (int i = 0; i < graph->n_inputs; i++) {
        float *raw = memory_array(in_n[i], sizeof *raw);
        if (task_draw(&(TaskCase){graph, w, VARIANT_DRAWN, 3, 1}, i, raw, &err)) log_die(&err);
        dtype_to_double(DTYPE_F32, raw, in[i], in_n[i]);
        free(raw);
    }
    if (task_reference(graph, w, (const double *const *)in, a, &err) ||
        task_reference(hand, w, (const double *const *)in, b, &err))
        log_die(&err);
    for (size_t i = 0; i < out_n[0]; i++)
        if (!(fabs(a[0][i] - b[0][i]) <= 1e-11 * (1 + fabs(b[0][i]))) && !bad++)
            printf("%s: element %zu is %.17g, by hand %.17g\n", hand->name, i, a[0][i], b[0][i]);
    release(in, graph->n_inputs);
    release(a, 1);
    release(b, 1);
    return bad;
}

static int same_axes(const Task *graph, const Task *hand)
{
    if (graph->n_inputs != hand->n_inputs || graph->n_axes != hand->n_axes) return 0;
    for (int a = 0; a < hand->n_axes; a++)
        if (strcmp(graph->axis_name[a], hand->axis_name[a])) return 0;
    return 1;
}

/* Returns whether the task agrees, at the workloads of both. */
static int agrees(const char *folder, const char *name)
{
    char *derived = memory_printf("%s/%s", folder, name),
         *by_hand = memory_printf("tasks/%s", name);
    Task *graph, *hand;
    Error err;
    if (task_load(derived, &graph, &err) || task_load(by_hand, &hand, &err)) log_die(&err);
    int same = same_axes(graph, hand);
    if (!same) printf("%s: other axes or inputs\n", name);
    for (int w = 0; same && w < graph->n_workloads + hand->n_workloads; w++) {
        const Workload *at = w < graph->n_workloads ? &graph->workloads[w]
                                                    : &hand->workloads[w - graph->n_workloads];
        same = at->role != ROLE_CHECK || !differences(graph, hand, at);
    }
    task_free(graph);
    task_free(hand);
    free(derived), free(by_hand);
    return same;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"attention",        "conv3d_norm_min_clamp",
                                        "diag_matmul",      "gelu",
                                        "layernorm",        "matmul",
                                        "matmul_bias_relu", "relu",
                                        "residual_rmsnorm", "row_sum",
                                        "softmax",          "transpose"};
    const int n = sizeof names / sizeof *names;
    int good = 0;
    log_open("drive_references");
    for (int i = 0; argc == 2 && i < n; i++) good += agrees(argv[1], names[i]);
    printf("%d of %d agree\n", good, n);
    return good != n;
}
