/* Runs a task's op lines on tensors that are all float64 where the task's are floats of any width:
 * the inputs are as drawn, and an op line widens each. What a line makes a float of 16 or 32 bits is a
 * float64, too, as it is a double where the host computes. A graph that rounds to a narrower type, or
 * makes floats without naming their type, is left to the host. Where the device keeps contents,
 * inputs and results stay on it. */
#include "eval/judge/device_reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/log.h"
#include "base/memory.h"
#include "eval/candidate/candidate.h"
#include "eval/judge/run.h"
#include "tasks/task_graph.h"

/* Beyond it, the host's draws of elements and doubles of a result take longer than a compilation. */
static const double host_flops = 1e8;

int device_reference_needed(const Task *t, const Workload *w)
{
    double bytes, flops;
    Error ignored;
    return t->graph && !task_graph_cost(t, w, &bytes, &flops, &ignored) && flops > host_flops;
}

static TaskTensor *widened(const TaskTensor *list, int n)
{
    TaskTensor *copy = memory_array((size_t)n + 1, sizeof *copy);
    memcpy(copy, list, (size_t)n * sizeof *copy);
    for (int i = 0; i < n; i++)
        if (dtype_is_float(copy[i].dtype)) copy[i].dtype = DTYPE_F64;
    return copy;
}

/* Lines with float64 for each narrower float that they name. */
static void put_wide(Buffer *out, const char *lines)
{
    static const char *const names[] = {"torch.float32", "torch.float16", "torch.bfloat16"};
    while (*lines) {
        size_t n = 0;
        for (int i = 0; i < 3 && !n; i++)
            if (!strncmp(lines, names[i], strlen(names[i]))) n = strlen(names[i]);
        if (n)
            buffer_puts(out, "torch.float64");
        else
            buffer_append(out, lines, 1);
        lines += n ? n : 1;
    }
}

/* The task's graph with the lines of put_wide. */
static int wide_graph(const Task *t, Graph **out, Error *err)
{
    const Graph *g = t->graph;
    const char *inputs[GRAPH_MAX_INPUTS], *outputs[GRAPH_MAX_OUTPUTS];
    char **lines = memory_array((size_t)g->n_nodes, sizeof *lines);
    for (int i = 0; i < g->n_nodes; i++) {
        Buffer b;
        buffer_init(&b, CANDIDATE_MAX_SOURCE + 1);
        put_wide(&b, g->text[i]);
        lines[i] = buffer_detach(&b);
    }
    for (int i = 0; i < g->n_inputs; i++) inputs[i] = g->name[i];
    for (int i = 0; i < g->n_outputs; i++) outputs[i] = g->name[g->output[i]];
    int rc = graph_read(&(GraphSource){.lines = (const char *const *)lines,
                                       .n_lines = g->n_nodes,
                                       .inputs = inputs,
                                       .n_inputs = g->n_inputs,
                                       .outputs = outputs,
                                       .n_outputs = g->n_outputs},
                        out, err);
    for (int i = 0; i < g->n_nodes; i++) free(lines[i]);
    free(lines);
    return rc;
}

/* Whether every float of the graph is a float64 when the inputs are. */
static int all_wide(const Task *t, const Workload *w, Error *err)
{
    Task wide = *t;
    GraphBound *b = NULL;
    if (wide_graph(t, &wide.graph, err)) return -1;
    wide.inputs = widened(t->inputs, t->n_inputs);
    wide.outputs = widened(t->outputs, t->n_outputs);
    int rc = task_graph_bind(&wide, w, &b, err);
    for (int i = 0; i < t->graph->n_values && !rc; i++) {
        const GraphValue *v = &b->values[i];
        if (v->live && dtype_is_float(v->tensor.dtype) && v->tensor.dtype != DTYPE_F64)
            rc = error_set(err, ERROR_UNSUPPORTED, "the graph rounds %s to %s", t->graph->name[i],
                           dtype_name(v->tensor.dtype));
    }
    graph_bound_free(b);
    graph_free(wide.graph);
    free(wide.inputs);
    free(wide.outputs);
    return rc;
}

/* The task whose inputs have other names, and the plan that widens them to those of the graph. */
static char *narrow(const Task *t, Task *out, Error *err)
{
    Buffer b;
    char prefix[32] = "narrow";
    *out = *t;
    out->rotates = -1;
    out->inputs = memory_array((size_t)t->n_inputs, sizeof *out->inputs);
    memcpy(out->inputs, t->inputs, (size_t)t->n_inputs * sizeof *out->inputs);
    out->outputs = widened(t->outputs, t->n_outputs);
    while (strlen(prefix) + 1 < sizeof prefix && strstr(t->baseline_source, prefix))
        strcat(prefix, "_");
    buffer_init(&b, CANDIDATE_MAX_SOURCE + 1);
    for (int i = 0; i < t->n_inputs; i++) {
        TaskTensor *x = &out->inputs[i];
        if (!dtype_is_float(x->dtype)) continue;
        snprintf(x->name, sizeof x->name, "%s%d", prefix, i);
        buffer_printf(&b, "//@ op %s = aten.to.dtype(%s, torch.float64)\n", t->inputs[i].name,
                      x->name);
    }
    put_wide(&b, t->baseline_source);
    if (!b.full) return buffer_detach(&b);
    buffer_release(&b);
    error_set(err, ERROR_LIMIT, "the plan of the reference has more than %d bytes",
              CANDIDATE_MAX_SOURCE);
    return NULL;
}

/* Inputs and outputs as the run needs them: the case's own inputs, and results of doubles. */
static int fill(Case *c, const Case *of, Error *err)
{
    const Task *t = c->task;
    size_t n;
    for (int i = 0; i < t->n_outputs; i++) {
        if (task_elements(t, c->workload, &t->outputs[i], &n, err)) return -1;
        c->output_bytes[i] = n * dtype_size(t->outputs[i].dtype);
    }
    memcpy(c->inputs, of->inputs, sizeof c->inputs);
    memcpy(c->golden_inputs, of->golden_inputs, sizeof c->golden_inputs);
    for (int i = 0; i < t->n_inputs; i++)
        c->input_bytes[i] = case_drawn(of, &of->task->inputs[i], of->input_bytes[i]);
    return 0;
}

/* The outputs of a run: they stay on the device as they are, or are read as doubles. */
static int take_outputs(const Run *r, Case *to, Error *err)
{
    const Task *t = r->loaded->task;
    const DeviceOps *ops = r->loaded->ops;
    for (int i = 0; i < t->n_outputs; i++) {
        Dtype d = t->outputs[i].dtype;
        size_t bytes = r->test->output_bytes[i];
        DevicePtr p = r->memory.outputs[i];
        if (d == DTYPE_F64 && ops->golden) {
            if (ops->golden->keep_of(r->loaded->device, p, bytes, &to->golden_expected[i], err))
                return -1;
            continue;
        }
        void *raw = d == DTYPE_F64 ? (void *)to->expected[i] : memory_array(bytes, 1);
        int rc = ops->read(r->loaded->device, p, raw, bytes, err);
        if (!rc && d != DTYPE_F64) dtype_to_double(d, raw, to->expected[i], bytes / dtype_size(d));
        if (d != DTYPE_F64) free(raw);
        if (rc) return -1;
    }
    return 0;
}

static int run(const Machine *m, Task *t, const char *plan, const Case *c, Case *to, Error *err)
{
    Candidate lines;
    Fault f;
    Loaded l;
    Run r = {0};
    loaded_init(&l, m, t, 1);
    int rc = candidate_parse(plan, strlen(plan), 1, &lines, &f);
    if (!rc) rc = loaded_compile(&l, &lines, &f);
    if (!rc) rc = run_open(&r, &l, c, NULL, &f);
    if (!rc) rc = run_launch(&r, &f);
    if (!rc && take_outputs(&r, to, &f.error)) rc = -1;
    if (rc > 0) error_set(err, ERROR_UNSUPPORTED, "%.900s", f.message);
    if (rc < 0 && err) *err = f.error;
    run_close(&r);
    loaded_close(&l);
    candidate_release(&lines);
    return rc;
}

/* The inputs that the device keeps, for the case and for the run. */
static int keep_inputs(const Machine *d, Case *c, Error *err)
{
    for (int i = 0; i < c->task->n_inputs && d->ops->golden; i++) {
        size_t bytes = case_drawn(c, &c->task->inputs[i], c->input_bytes[i]);
        if (!c->golden_inputs[i] &&
            d->ops->golden->keep(d->device, c->inputs[i], bytes, &c->golden_inputs[i], err))
            return -1;
    }
    return 0;
}

int device_reference_plan(const Task *t, const Workload *w, ReferencePlan *out, Error *err)
{
    *out = (ReferencePlan){0};
    if (all_wide(t, w, err)) return 1;
    out->plan = narrow(t, &out->task, err);
    return out->plan ? 0 : -1;
}

void device_reference_release(ReferencePlan *p)
{
    free(p->plan);
    free(p->task.inputs);
    free(p->task.outputs);
}

int device_reference(const Machine *d, Case *c, Error *err)
{
    ReferencePlan p;
    Case own = {.task = &p.task, .workload = case_part(c), .scale = c->scale};
    int rc = device_reference_plan(c->task, case_part(c), &p, err);
    if (!rc && (keep_inputs(d, c, err) || fill(&own, c, err))) rc = -1;
    if (!rc) rc = run(d, &p.task, p.plan, &own, c, err);
    device_reference_release(&p);
    return rc;
}

int device_reference_case(void *of, Case *c)
{
    Error why;
    if (!device_reference_needed(c->task, case_part(c))) return 1;
    int rc = device_reference(of, c, &why);
    if (rc) log_debug("the host computes the reference of %s: %s", c->task->name, why.text);
    return rc;
}
