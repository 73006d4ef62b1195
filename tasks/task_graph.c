/* Graph tasks. The text for prompts has one operator a line, as PyTorch writes it. The baseline has
 * the graph's lines as `//@ op` lines. */
#include "tasks/task_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "tasks/graph/summed.h"

enum { MAX_TEXT = 1 << 22 };

/* ---- texts ---- */

static void put_results(Buffer *b, const OpLine *l)
{
    for (int i = 0; i < l->n_results; i++)
        buffer_printf(b, "%s%.*s", i ? ", " : "", (int)l->result[i].len, l->result[i].p);
}

/* The arguments with their brackets: everything from the operator's. */
static const char *arguments(const char *line)
{
    return strchr(strchr(line, '='), '(');
}

static char *formula(const Graph *g)
{
    Buffer b;
    buffer_init(&b, MAX_TEXT);
    for (int i = 0; i < g->n_nodes; i++) {
        const char *name = g->line[i].op->name, *overload = strrchr(name, '.');
        put_results(&b, &g->line[i]);
        buffer_printf(&b, " = %.*s%s\n", (int)(overload - name), name, arguments(g->text[i]));
    }
    return buffer_detach(&b);
}

static char *op_lines(const Graph *g)
{
    Buffer b;
    buffer_init(&b, MAX_TEXT);
    for (int i = 0; i < g->n_nodes; i++) buffer_printf(&b, "//@ op %s\n", g->text[i]);
    return buffer_detach(&b);
}

/* ---- reading ---- */

static int is_axis(void *task, const char *name)
{
    const Task *t = task;
    for (int i = 0; i < t->n_axes; i++)
        if (!strcmp(t->axis_name[i], name)) return 1;
    return 0;
}

/* names: memory for lines, inputs and outputs. */
static int read_lines(Task *t, const json_t *list, const char **names[3], Graph **out,
                      const char *file, Error *err)
{
    const char **lines = names[0], **inputs = names[1], **outputs = names[2];
    GraphSource s = {.lines = lines,
                     .n_lines = (int)json_array_size(list),
                     .inputs = inputs,
                     .n_inputs = t->n_inputs,
                     .outputs = outputs,
                     .n_outputs = t->n_outputs,
                     .taken = is_axis,
                     .ctx = t};
    for (int i = 0; i < s.n_lines; i++)
        if (!(lines[i] = json_string_value(json_array_get(list, (size_t)i))))
            return error_set(err, ERROR_CORRUPT, "%s: graph[%d]: a text expected", file, i);
    for (int i = 0; i < t->n_inputs; i++) inputs[i] = t->inputs[i].name;
    for (int i = 0; i < t->n_outputs; i++) outputs[i] = t->outputs[i].name;
    return graph_read(&s, out, err) ? error_prefix(err, "%s", file) : 0;
}

static int read_graph(Task *t, const json_t *root, const char *field, Graph **out, const char *file,
                      Error *err)
{
    json_t *list = json_need_array(root, field, file, err);
    if (!list) return -1;
    size_t n = json_array_size(list);
    if (n < 1 || n > GRAPH_MAX_NODES)
        return error_set(err, ERROR_LIMIT, "%s: %s: expected 1 to %d lines, found %zu", file, field,
                         GRAPH_MAX_NODES, n);
    const char **names[3] = {memory_array(n, sizeof(char *)),
                             memory_array((size_t)t->n_inputs, sizeof(char *)),
                             memory_array((size_t)t->n_outputs, sizeof(char *))};
    int rc = read_lines(t, list, names, out, file, err);
    for (int i = 0; i < 3; i++) free(names[i]);
    return rc;
}

int task_graph_read(Task *t, const json_t *root, const char *file, Error *err)
{
    if (read_graph(t, root, "graph", &t->graph, file, err)) return -1;
    t->reference_source = formula(t->graph);
    t->baseline_source = op_lines(t->graph);
    return 0;
}

int task_operators_read(Task *t, const json_t *root, const char *file, Error *err)
{
    return json_object_get(root, "operators")
               ? read_graph(t, root, "operators", &t->operators, file, err)
               : 0;
}

/* ---- one workload ---- */

static int check_output(const Task *t, const Workload *w, const GraphBound *b, int i, Error *err)
{
    const TaskTensor *x = &t->outputs[i];
    const OpTensor *y = &b->values[b->graph->output[i]].tensor;
    int64_t shape[TASK_MAX_RANK];
    if (task_shape(t, w, x, shape, err)) return -1;
    if (y->dtype != x->dtype)
        return error_set(err, ERROR_INVALID, "output %s: the graph gives %s, task.json has %s",
                         x->name, dtype_name(y->dtype), dtype_name(x->dtype));
    int same = y->rank == x->rank;
    for (int d = 0; d < x->rank && same; d++) same = y->size[d] == shape[d];
    if (same) return 0;
    Buffer text;
    buffer_init(&text, 512);
    for (int d = 0; d < y->rank; d++)
        buffer_printf(&text, "%s%lld", d ? ", " : "", (long long)y->size[d]);
    buffer_puts(&text, "], task.json has [");
    for (int d = 0; d < x->rank; d++)
        buffer_printf(&text, "%s%lld", d ? ", " : "", (long long)shape[d]);
    error_set(err, ERROR_INVALID, "output %s: the graph gives [%s]", x->name, text.data);
    buffer_release(&text);
    return -1;
}

int task_graph_bind(const Task *t, const Workload *w, GraphBound **out, Error *err)
{
    OpTensor *inputs = memory_array((size_t)t->n_inputs, sizeof *inputs);
    TaskScope scope = {t, w};
    int rc = 0;
    for (int i = 0; i < t->n_inputs && !rc; i++) {
        inputs[i] = (OpTensor){.dtype = t->inputs[i].dtype, .rank = t->inputs[i].rank};
        rc = task_shape(t, w, &t->inputs[i], inputs[i].size, err);
        op_contiguous(&inputs[i]);
    }
    if (!rc)
        rc = graph_bind(t->graph ? t->graph : t->operators, task_lookup, &scope, inputs, out, err);
    free(inputs);
    if (rc) return -1;
    for (int i = 0; i < t->n_outputs && !rc; i++) rc = check_output(t, w, *out, i, err);
    if (!rc) return 0;
    graph_bound_free(*out);
    *out = NULL;
    return -1;
}

int task_graph_tf32(const Task *t, unsigned *out, Error *err)
{
    GraphBound *b;
    *out = 0;
    if (task_graph_bind(t, task_workload(t, ROLE_TIME), &b, err)) return -1;
    for (int node = 0; node < b->graph->n_nodes; node++)
        if (b->calls[node].live) *out |= op_tf32(&b->calls[node].call);
    graph_bound_free(b);
    return 0;
}

int task_tf32_flops(const Task *t, const Workload *w, double *flops, Error *err)
{
    GraphBound *b;
    double bytes, all;
    *flops = 0;
    if (!t->tf32) return 0;
    if (task_cost(t, w, &bytes, &all, err)) return -1;
    if (!t->graph) *flops = all;
    if (!t->graph) return 0;
    if (task_graph_bind(t, w, &b, err)) return -1;
    for (int node = 0; node < b->graph->n_nodes; node++) {
        const OpCall *c = &b->calls[node].call;
        OpCost cost;
        if (b->calls[node].live && op_tf32(c) & t->tf32 && !op_cost(c, &cost, NULL))
            *flops += cost.flops;
    }
    graph_bound_free(b);
    if (*flops > all) *flops = all;
    return 0;
}

typedef int CostOf(const GraphBound *b, OpCost *out, Error *err);

static int cost_of(const Task *t, const Workload *w, CostOf *of, double *bytes, double *flops,
                   Error *err)
{
    GraphBound *b;
    OpCost cost;
    if (task_graph_bind(t, w, &b, err)) return -1;
    int rc = of(b, &cost, err);
    graph_bound_free(b);
    *bytes = cost.bytes;
    *flops = cost.flops;
    return rc;
}

int task_graph_cost(const Task *t, const Workload *w, double *bytes, double *flops, Error *err)
{
    return cost_of(t, w, graph_cost, bytes, flops, err);
}

int task_least_cost(const Task *t, const Workload *w, double *bytes, double *flops, Error *err)
{
    return t->graph ? cost_of(t, w, graph_least_cost, bytes, flops, err)
                    : task_cost(t, w, bytes, flops, err);
}

int task_graph_reference(const Task *t, const Workload *w, const double *const *in,
                         double *const *out, Error *err)
{
    GraphBound *b;
    if (task_graph_bind(t, w, &b, err)) return error_prefix(err, "task %s", t->name);
    int rc = graph_run(b, in, out, NULL, err);
    graph_bound_free(b);
    return rc ? error_prefix(err, "task %s", t->name) : 0;
}
