/* Builds the JSON that describes a package. Every expression stays the text of the plan or of task.json,
 * so that a package computes sizes by the same rules as the evaluator did. */
#include "export/description.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/paths.h"

enum { TEMPLATE_MAX = 1 << 20, TASK_JSON_MAX = 1 << 24 };

static json_t *text(PlanText t)
{
    return json_stringn(t.p, t.len);
}

json_t *package_graph(const Package *p, json_t **root, Error *err)
{
    char *path = memory_printf("%s/task.json", p->task->dir);
    *root = json_read_file(path, TASK_JSON_MAX, err);
    free(path);
    return *root ? json_object_get(*root, "graph") : NULL;
}

/* given: the axes in task.json, with the module's own sizes where these are larger than what is judged. */
static json_t *describe_axes(const Package *p, const json_t *given)
{
    json_t *axes = json_object();
    for (int a = 0; a < p->task->n_axes; a++) {
        const char *name = p->task->axis_name[a];
        int64_t low, high;
        package_axis_bounds(p, a, &low, &high);
        json_t *o = json_pack("{s:I, s:I}", "low", (json_int_t)low, "high", (json_int_t)high),
               *own = json_object_get(json_object_get(given, name), "own");
        if (own) json_object_set(o, "own", own);
        json_object_set_new(axes, name, o);
    }
    return axes;
}

/* given: the same tensors in task.json, with the module's parameters and how contents are drawn. */
static json_t *describe_tensors(const Package *p, const TaskTensor *x, int n, const json_t *given)
{
    static const char *const drawn[] = {"parameter", "draw", "low",      "high",
                                        "mean",      "std",  "distinct", "format"};
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        json_t *shape = json_array();
        for (int d = 0; d < x[i].rank; d++)
            json_array_append_new(shape, json_string(x[i].shape[d]));
        json_t *o =
            json_pack("{s:s, s:s, s:o, s:I}", "name", x[i].name, "dtype", dtype_name(x[i].dtype),
                      "shape", shape, "most", (json_int_t)package_max_elements(p, &x[i]));
        for (size_t k = 0; k < sizeof drawn / sizeof *drawn; k++) {
            json_t *value = json_object_get(json_object_get(given, x[i].name), drawn[k]);
            if (value) json_object_set(o, drawn[k], value);
        }
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *describe_buffers(const Plan *plan)
{
    json_t *list = json_array();
    for (int i = 0; i < plan->n_buffers; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:I}", "name", plan->buffers[i].name,
                                              "type", plan->buffers[i].type, "count",
                                              text(plan->buffers[i].count), "element",
                                              (json_int_t)plan->buffers[i].type_size));
    return list;
}

static json_t *describe_dims(const PlanText *dims, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, text(dims[i]));
    return list;
}

/* Where the plan says no sizes they are the tensor's. Strides may be left out: row by row. */
static json_t *describe_map(const PackageArgument *a)
{
    const PlanMap *m = a->map;
    json_t *size = m->size[0].len ? describe_dims(m->size, m->rank) : json_array();
    for (int i = 0; i < m->rank && !m->size[0].len; i++)
        json_array_append_new(size, a->shape ? json_string(a->shape[i]) : text(a->count));
    json_t *o =
        json_pack("{s:s, s:s, s:o, s:o, s:I, s:i, s:i, s:o, s:o}", "kind", "map", "map", m->name,
                  "name", text(a->name), "offset", a->text.len ? text(a->text) : json_string("0"),
                  "element", (json_int_t)a->element, "type", (int)a->map_type, "swizzle",
                  m->swizzle, "size", size, "box", describe_dims(m->box, m->rank));
    if (m->stride[0].len) json_object_set_new(o, "stride", describe_dims(m->stride, m->rank));
    return o;
}

static json_t *describe_argument(const Package *p, const PlanStep *s, int i)
{
    PackageArgument a;
    package_argument(p, s, i, &a);
    if (a.kind == ARGUMENT_MAP) return describe_map(&a);
    if (a.kind == ARGUMENT_POINTER)
        return json_pack("{s:s, s:o, s:o, s:I}", "kind", "pointer", "name", text(a.name), "offset",
                         a.text.len ? text(a.text) : json_string("0"), "element",
                         (json_int_t)a.element);
    json_t *value = a.text.len       ? text(a.text)
                    : isnan(a.value) ? json_string("nan")
                    : isinf(a.value) ? json_string(a.value < 0 ? "-inf" : "inf")
                                     : json_real(a.value);
    return json_pack("{s:s, s:o, s:i}", "kind", a.kind == ARGUMENT_FLOAT ? "float" : "integer",
                     "value", value, "bytes", (int)a.bytes);
}

/* "h = aten.linear.default(x, weight)": the operator's whole name, so that PyTorch needs no choice. */
static json_t *describe_op(const OpLine *l)
{
    Buffer b;
    buffer_init(&b, 2 * OP_LINE_MAX);
    for (int i = 0; i < l->n_results; i++)
        buffer_printf(&b, "%s%.*s", i ? ", " : "", (int)l->result[i].len, l->result[i].p);
    buffer_printf(&b, " = %s(", l->op->name);
    for (int i = 0; i < l->n_args; i++)
        buffer_printf(&b, "%s%.*s%s%.*s", i ? ", " : "", (int)l->keyword[i].len, l->keyword[i].p,
                      l->keyword[i].len ? "=" : "", (int)l->value[i].len, l->value[i].p);
    buffer_printf(&b, ")");
    json_t *o = json_pack("{s:s#}", "op", b.data, (int)b.len);
    buffer_release(&b);
    return o;
}

static json_t *describe_launch(const Package *p, const PlanStep *s)
{
    json_t *arguments = json_array();
    for (int i = 0; i < s->n_args; i++)
        json_array_append_new(arguments, describe_argument(p, s, i));
    json_t *o = json_pack(
        "{s:i, s:o, s:o, s:o, s:o}", "kernel", s->kernel, "grid", describe_dims(s->grid, s->n_grid),
        "block", describe_dims(s->block, s->n_block), "shared",
        s->shared.len ? text(s->shared) : json_string("0"), "arguments", arguments);
    if (s->cooperative) json_object_set_new(o, "cooperative", json_true());
    if (s->loops)
        json_object_set_new(
            o, "loop",
            json_pack("{s:s, s:o, s:o}", "name", s->var, "from", text(s->from), "to", text(s->to)));
    return o;
}

static json_t *describe_step(const Package *p, const PlanStep *s)
{
    json_t *o = s->op ? describe_op(s->op) : describe_launch(p, s);
    if (s->branch >= 0)
        json_object_set_new(o, "when",
                            json_string(p->judged.candidate.plan.branches[s->branch].taken));
    return o;
}

static json_t *describe_binaries(const Package *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->n_code; i++) {
        char file[40];
        snprintf(file, sizeof file, "kernels_%s.cubin", p->code[i].arch);
        json_array_append_new(list, json_pack("{s:i, s:i, s:s}", "major", p->code[i].major, "minor",
                                              p->code[i].minor, "file", file));
    }
    return list;
}

/* A workload for the package's own test: its shapes, and the tolerances of what is drawn. */
static json_t *describe_case(const Task *t, const Workload *w)
{
    char sizes[512];
    json_t *inputs = json_array(), *tolerance = json_array();
    task_workload_text(t, w, sizes, sizeof sizes);
    for (int k = 0; k < t->n_inputs; k++) {
        int64_t shape[TASK_MAX_RANK] = {0};
        json_t *list = json_array();
        task_shape(t, w, &t->inputs[k], shape, NULL);
        for (int d = 0; d < t->inputs[k].rank; d++)
            json_array_append_new(list, json_integer(shape[d]));
        json_array_append_new(inputs, list);
    }
    for (int k = 0; k < t->n_outputs; k++) {
        Tolerance by = {0};
        task_tolerance(&(TaskCase){t, w, VARIANT_DRAWN, 0, 1}, k, &by, NULL);
        json_array_append_new(tolerance, json_pack("{s:f, s:f}", "atol", by.atol, "rtol", by.rtol));
    }
    return json_pack("{s:s, s:s, s:o, s:o}", "role", w->role == ROLE_CHECK ? "check" : "time",
                     "sizes", sizes, "inputs", inputs, "tolerance", tolerance);
}

static json_t *describe_cases(const Package *p)
{
    json_t *cases = json_array();
    for (int i = 0; i < p->task->n_workloads; i++)
        if (p->task->workloads[i].role != ROLE_SIM)
            json_array_append_new(cases, describe_case(p->task, &p->task->workloads[i]));
    return cases;
}

static void put_accepts(const Package *p, json_t *o)
{
    Buffer b;
    buffer_init(&b, 1 << 20);
    package_accepts(p, &b);
    json_object_set_new(o, "accepts", json_string(b.data));
    buffer_release(&b);
}

json_t *package_describe(const Package *p, Error *err)
{
    json_t *root, *steps = json_array(), *kernels = json_array();
    json_t *graph = package_graph(p, &root, err);
    const Plan *plan = &p->judged.candidate.plan;
    if (!root) {
        json_decref(steps);
        json_decref(kernels);
        return NULL;
    }
    for (int s = 0; s < plan->n_steps; s++)
        json_array_append_new(steps, describe_step(p, &plan->steps[s]));
    for (int k = 0; k < plan->n_kernels; k++)
        json_array_append_new(kernels, json_string(p->judged.loaded.kernels[k].lowered));
    json_t *o = json_pack(
        "{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", p->name, "task",
        p->task->name, "date", p->date, "axes", describe_axes(p, json_object_get(root, "axes")),
        "inputs",
        describe_tensors(p, p->task->inputs, p->task->n_inputs, json_object_get(root, "inputs")),
        "outputs", describe_tensors(p, p->task->outputs, p->task->n_outputs, NULL), "buffers",
        describe_buffers(plan), "kernels", kernels, "steps", steps, "binaries",
        describe_binaries(p), "cases", describe_cases(p));
    if (graph) json_object_set(o, "graph", graph);
    put_accepts(p, o);
    static const char *const as_they_are[] = {"call", "results", "tags", "constraints"};
    for (size_t i = 0; i < sizeof as_they_are / sizeof *as_they_are; i++)
        if (json_object_get(root, as_they_are[i]))
            json_object_set(o, as_they_are[i], json_object_get(root, as_they_are[i]));
    json_decref(root);
    return o;
}

int package_write_json(const char *dir, const char *name, json_t *o, Error *err)
{
    char *content = json_dumps(o, JSON_INDENT(1));
    int rc = content ? package_file(dir, name, content, strlen(content), err)
                     : error_set(err, ERROR_INVALID, "%s: a text in it is not UTF-8", name);
    free(content);
    json_decref(o);
    return rc;
}

char *package_template(const char *name, size_t *len, Error *err)
{
    Buffer b;
    char *relative = memory_printf("share/export/%s", name), *path = paths_in_root(relative, err),
         *out = NULL;
    free(relative);
    if (!path) return NULL;
    buffer_init(&b, TEMPLATE_MAX);
    if (!file_read(path, TEMPLATE_MAX, &b, err)) {
        *len = b.len;
        out = buffer_detach(&b);
    }
    buffer_release(&b);
    free(path);
    return out;
}
