/* Writes a package in the schema of FlashInfer Trace: definition.json, solution.json and trace.json.
 * The schema's tensors have axes by name alone, and its reference is Python, so that a task needs a
 * graph and shapes without arithmetic. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "export/description.h"

static int is_axis(const Task *t, const char *name)
{
    for (int a = 0; a < t->n_axes; a++)
        if (!strcmp(t->axis_name[a], name)) return 1;
    return 0;
}

static int is_number(const char *s)
{
    size_t n = strspn(s, "0123456789");
    return n && !s[n];
}

/* A dimension as the schema names it: the axis, or "size_64" for a constant; NULL: neither. */
static char *dimension(const Task *t, const char *shape)
{
    if (is_axis(t, shape)) return memory_strdup(shape);
    return is_number(shape) ? memory_printf("size_%s", shape) : NULL;
}

static json_t *tensors(const Task *t, const TaskTensor *x, int n, json_t *axes, Error *err)
{
    json_t *all = json_object();
    for (int i = 0; i < n; i++) {
        json_t *shape = json_array();
        for (int d = 0; d < x[i].rank; d++) {
            char *name = dimension(t, x[i].shape[d]);
            if (!name) {
                error_set(err, ERROR_UNSUPPORTED,
                          "%s: dimension %d of %s is \"%s\"; FlashInfer-Bench knows names and "
                          "numbers alone",
                          t->name, d, x[i].name, x[i].shape[d]);
                json_decref(shape);
                json_decref(all);
                return NULL;
            }
            if (is_number(x[i].shape[d]))
                json_object_set_new(axes, name,
                                    json_pack("{s:s, s:I}", "type", "const", "value",
                                              (json_int_t)strtoll(x[i].shape[d], NULL, 10)));
            json_array_append_new(shape, json_string(name));
            free(name);
        }
        json_object_set_new(
            all, x[i].name,
            json_pack("{s:o, s:s}", "shape", shape, "dtype", dtype_name(x[i].dtype)));
    }
    return all;
}

static void put_names(Buffer *b, const TaskTensor *x, int n)
{
    for (int i = 0; i < n; i++) buffer_printf(b, "%s%s", i ? ", " : "", x[i].name);
}

/* A Python function that runs the graph. An axis is the size of the dimension that has its name. */
static void put_reference(Buffer *b, const Task *t, const json_t *graph)
{
    size_t i;
    json_t *line;
    buffer_puts(b, "import torch\nfrom math import inf, nan\n\naten = torch.ops.aten\n\n\n"
                   "def ceil_div(a, b):\n    return -(-a // b)\n\n\ndef run(");
    put_names(b, t->inputs, t->n_inputs);
    buffer_puts(b, "):\n");
    for (int a = 0; a < t->n_axes; a++)
        for (int k = 0, found = 0; k < t->n_inputs && !found; k++)
            for (int d = 0; d < t->inputs[k].rank && !found; d++)
                if (!strcmp(t->inputs[k].shape[d], t->axis_name[a])) {
                    buffer_printf(b, "    %s = %s.shape[%d]\n", t->axis_name[a], t->inputs[k].name,
                                  d);
                    found = 1;
                }
    json_array_foreach(graph, i, line)
    {
        /* Integer division is the one operation that Python spells in another way. */
        buffer_puts(b, "    ");
        for (const char *c = json_string_value(line); *c; c++)
            buffer_puts(b, *c == '/' ? "//" : (char[]){*c, 0});
        buffer_puts(b, "\n");
    }
    buffer_puts(b, "    return ");
    put_names(b, t->outputs, t->n_outputs);
    buffer_puts(b, "\n");
}

static json_t *definition(const Package *p, Error *err)
{
    const Task *t = p->task;
    json_t *root, *graph = package_graph(p, &root, err);
    if (!root) return NULL;
    if (!graph) {
        json_decref(root);
        error_set(err, ERROR_UNSUPPORTED,
                  "task %s has no graph, from which the definition's reference is written",
                  t->name);
        return NULL;
    }
    json_t *axes = json_object(), *inputs, *outputs = NULL, *o = NULL;
    for (int a = 0; a < t->n_axes; a++)
        json_object_set_new(axes, t->axis_name[a], json_pack("{s:s}", "type", "var"));
    inputs = tensors(t, t->inputs, t->n_inputs, axes, err);
    if (inputs) outputs = tensors(t, t->outputs, t->n_outputs, axes, err);
    if (inputs && outputs) {
        Buffer b;
        buffer_init(&b, 1 << 20);
        put_reference(&b, t, graph);
        o = json_pack("{s:s, s:s, s:O, s:o, s:o, s:s, s:s}", "name", t->name, "op_type", t->op_type,
                      "axes", axes, "inputs", inputs, "outputs", outputs, "reference", b.data,
                      "description", t->description);
        buffer_release(&b);
    } else {
        json_decref(inputs);
    }
    json_decref(axes);
    json_decref(root);
    return o;
}

static const char digits64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_base64(Buffer *b, const unsigned char *data, size_t n)
{
    for (size_t i = 0; i < n; i += 3) {
        unsigned v = (unsigned)data[i] << 16 | (i + 1 < n ? data[i + 1] : 0u) << 8 |
                     (i + 2 < n ? data[i + 2] : 0u);
        char four[4] = {digits64[v >> 18], digits64[v >> 12 & 63], digits64[v >> 6 & 63],
                        digits64[v & 63]};
        if (i + 1 >= n) four[2] = '=';
        if (i + 2 >= n) four[3] = '=';
        buffer_append(b, four, 4);
    }
}

static int put_binaries(Buffer *b, const Package *p, Error *err)
{
    json_t *description = package_describe(p, err);
    if (!description) return -1;
    char *text = json_dumps(description, JSON_COMPACT);
    json_decref(description);
    json_t *quoted = json_string(text);
    free(text);
    text = json_dumps(quoted, JSON_ENCODE_ANY); /* a JSON text is a Python text */
    json_decref(quoted);
    buffer_printf(b, "PACKAGE = %s\n\nCUBINS = {\n", text);
    free(text);
    for (int i = 0; i < p->n_code; i++) {
        buffer_printf(b, "    \"kernels_%s.cubin\": \"", p->code[i].arch);
        put_base64(b, p->code[i].cubin, p->code[i].len);
        buffer_puts(b, "\",\n");
    }
    buffer_puts(b, "}\n");
    return b->full ? error_set(err, ERROR_LIMIT, "the solution has more than %zu bytes", b->max)
                   : 0;
}

static int add_source(json_t *sources, const char *path, const char *template, Error *err)
{
    size_t len;
    char *content = package_template(template, &len, err);
    if (!content) return -1;
    json_array_append_new(sources, json_pack("{s:s, s:s}", "path", path, "content", content));
    free(content);
    return 0;
}

static json_t *solution(const Package *p, Error *err)
{
    json_t *sources = json_array(), *o = NULL;
    Buffer b;
    buffer_init(&b, (size_t)1 << 28);
    if (!add_source(sources, "main.py", "flashinfer/main.py", err) &&
        !add_source(sources, "plan.py", "torch/plan.py", err) &&
        !add_source(sources, "driver.py", "torch/driver.py", err) && !put_binaries(&b, p, err)) {
        json_array_append_new(sources,
                              json_pack("{s:s, s:s}", "path", "binaries.py", "content", b.data));
        json_array_append_new(sources, json_pack("{s:s, s:s}", "path", "kernel.cu", "content",
                                                 p->judged.candidate.source));
        o = json_pack("{s:s, s:s, s:s, s:{s:s, s:[s], s:s, s:[], s:b}, s:O}", "name", p->name,
                      "definition", p->task->name, "author", "quern", "spec", "language", "python",
                      "target_hardware", "cuda", "entry_point", "main.py::run", "dependencies",
                      "destination_passing_style", 1, "sources", sources);
    }
    buffer_release(&b);
    json_decref(sources);
    return o;
}

/* The errors of a verdict's outputs are not recorded: they are within the tolerance, and the trace
 * says NaN. */
static json_t *trace(const Package *p)
{
    const Task *t = p->task;
    const Workload *w = task_workload(t, ROLE_TIME);
    const Verdict *v = &p->judged.verdict;
    json_t *axes = json_object(), *inputs = json_object();
    char log[PACKAGE_VERDICT_TEXT], stamp[32];
    for (int a = 0; a < t->n_axes; a++)
        json_object_set_new(axes, t->axis_name[a], json_integer(w->axis[a]));
    for (int i = 0; i < t->n_inputs; i++)
        json_object_set_new(inputs, t->inputs[i].name, json_pack("{s:s}", "type", "random"));
    package_verdict_text(p, log);
    snprintf(stamp, sizeof stamp, "%sT00:00:00Z", p->date);
    return json_pack(
        "{s:s, s:s, s:{s:o, s:o, s:s}, s:{s:s, s:s, s:s, s:{s:s, s:{s:s}}, s:{s:s, s:s}, "
        "s:{s:f, s:f, s:f}}}",
        "definition", t->name, "solution", p->name, "workload", "axes", axes, "inputs", inputs,
        "uuid", v->key, "evaluation", "status", "PASSED", "timestamp", stamp, "log", log,
        "environment", "hardware", v->device_name[0] ? v->device_name : v->device, "libs", "nvrtc",
        v->compiler, "correctness", "max_relative_error", "NaN", "max_absolute_error", "NaN",
        "performance", "latency_ms", v->time_us / 1e3, "reference_latency_ms", v->baseline_us / 1e3,
        "speedup_factor", v->speedup);
}

int package_write_flashinfer(const Package *p, const char *dir, Error *err)
{
    if (package_refuse_ops(p, "flashinfer", err)) return -1;
    json_t *d = definition(p, err);
    if (!d || package_write_json(dir, "definition.json", d, err)) return -1;
    json_t *s = solution(p, err);
    if (!s || package_write_json(dir, "solution.json", s, err)) return -1;
    return package_write_json(dir, "trace.json", trace(p), err);
}
