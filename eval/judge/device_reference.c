/* Runs a task's op lines on tensors that are all float64 where the task's are floats of any width. A
 * graph that itself rounds to a narrower type is left to the host. */
#include "eval/judge/device_reference.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "eval/candidate/candidate.h"
#include "eval/judge/run.h"
#include "tasks/task_graph.h"

static const double host_flops = 2e9; /* about a second of all cores */

int device_reference_wanted(const Task *t, const Workload *w)
{
    double bytes, flops;
    Error ignored;
    return t->graph && !task_graph_cost(t, w, &bytes, &flops, &ignored) && flops > host_flops;
}

static void widen(TaskTensor **list, int n)
{
    TaskTensor *copy = memory_array((size_t)n + 1, sizeof *copy);
    memcpy(copy, *list, (size_t)n * sizeof *copy);
    for (int i = 0; i < n; i++)
        if (copy[i].dtype < DTYPE_I32) copy[i].dtype = DTYPE_F64;
    *list = copy;
}

/* Whether every float of the graph is a float64. */
static int all_wide(const Task *t, const Workload *w, Error *err)
{
    GraphBound *b = NULL;
    int rc = task_graph_bind(t, w, &b, err);
    for (int i = 0; i < t->graph->n_values && !rc; i++) {
        const GraphValue *v = &b->values[i];
        if (v->live && op_dtype_is_float(v->tensor.dtype) && v->tensor.dtype != OP_F64)
            rc = error_set(err, ERROR_UNSUPPORTED, "the graph rounds %s to %s", t->graph->name[i],
                           op_dtype_name(v->tensor.dtype));
    }
    graph_bound_free(b);
    return rc;
}

static int fill(Case *c, void *const *inputs, Error *err)
{
    const Task *t = c->task;
    size_t n;
    for (int i = 0; i < t->n_outputs; i++) {
        if (task_elements(t, c->workload, &t->outputs[i], &n, err)) return -1;
        c->output_bytes[i] = n * dtype_size(t->outputs[i].dtype);
    }
    for (int i = 0; i < t->n_inputs; i++) {
        if (task_elements(t, c->workload, &t->inputs[i], &n, err)) return -1;
        c->input_bytes[i] = n * dtype_size(t->inputs[i].dtype);
        c->inputs[i] = inputs[i];
    }
    return 0;
}

/* The outputs of a run as doubles. */
static int read_outputs(const Run *r, double *const *out, Error *err)
{
    const Task *t = r->loaded->task;
    for (int i = 0; i < t->n_outputs; i++) {
        Dtype d = t->outputs[i].dtype;
        size_t bytes = r->test->output_bytes[i];
        void *raw = d == DTYPE_F64 ? (void *)out[i] : memory_array(bytes, 1);
        int rc = r->loaded->ops->read(r->loaded->device, r->memory.outputs[i], raw, bytes, err);
        if (!rc && d != DTYPE_F64) dtype_to_double(d, raw, out[i], bytes / dtype_size(d));
        if (d != DTYPE_F64) free(raw);
        if (rc) return -1;
    }
    return 0;
}

static int run(const ReferenceDevice *d, Task *wide, const Case *c, double *const *out, Error *err)
{
    Candidate lines;
    Outcome outcome;
    Finding f;
    Loaded l = {0};
    Run r = {0};
    int line;
    const char *source = wide->baseline_source;
    int rc = candidate_parse_trusted(source, strlen(source), &lines, &outcome, &line, err);
    if (!rc) rc = loaded_compile(&l, d->ops, d->device, d->compiler, wide, &lines, 1, &f, err);
    if (!rc) rc = run_open(&r, &l, c, NULL, &f, err);
    if (!rc) rc = run_launch(&r, &f, err);
    if (!rc) rc = read_outputs(&r, out, err);
    if (rc > 0) error_set(err, ERROR_UNSUPPORTED, "%.900s", f.message);
    run_close(&r);
    loaded_close(&l);
    candidate_release(&lines);
    return rc;
}

int device_reference(const ReferenceDevice *d, const Task *t, const Workload *w,
                     void *const *inputs, double *const *out, Error *err)
{
    Task wide = *t;
    Case c = {.task = &wide, .workload = w, .scale = 1};
    void *raw[TASK_MAX_TENSORS] = {NULL};
    size_t n;
    int rc = 0;
    wide.turns = -1;
    widen(&wide.inputs, t->n_inputs);
    widen(&wide.outputs, t->n_outputs);
    int unfit = all_wide(&wide, w, err);
    for (int i = 0; i < t->n_inputs && !unfit && !rc; i++) {
        raw[i] = inputs[i];
        if (t->inputs[i].dtype >= DTYPE_I32 || (rc = task_elements(t, w, &t->inputs[i], &n, err)))
            continue;
        raw[i] = memory_array(n, sizeof(double));
        dtype_to_double(t->inputs[i].dtype, inputs[i], raw[i], n);
    }
    if (!unfit && !rc) rc = fill(&c, raw, err);
    if (!unfit && !rc) rc = run(d, &wide, &c, out, err);
    for (int i = 0; i < t->n_inputs; i++)
        if (raw[i] != inputs[i]) free(raw[i]);
    free(wide.inputs);
    free(wide.outputs);
    return unfit ? 1 : rc;
}

int device_reference_case(void *of, const Task *t, const Workload *w, void *const *inputs,
                          double *const *out)
{
    Error why;
    if (!device_reference_wanted(t, w)) return 1;
    int rc = device_reference(of, t, w, inputs, out, &why);
    if (rc) log_debug("the host computes the reference of %s: %s", t->name, why.text);
    return rc;
}
