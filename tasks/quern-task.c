/* quern-task: lists, shows and gates tasks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "tasks/gate.h"
#include "tasks/task.h"

/* ---- check workloads as files of NumPy: inputs as drawn, and what the reference makes of them ---- */

enum { EXAMPLE_MAX_ELEMENTS = 1 << 24 }; /* of one tensor */

enum { NPY_ALIGN = 64, NPY_FIXED = 10 };

/* The head of a .npy file, version 1.0: magic, length, and a dictionary padded to 64 bytes. */
static void npy_head(Buffer *b, int rank, const int64_t *shape)
{
    Buffer d;
    buffer_init(&d, 1024);
    buffer_puts(&d, "{'descr': '<f8', 'fortran_order': False, 'shape': (");
    for (int i = 0; i < rank; i++) buffer_printf(&d, "%lld,", (long long)shape[i]);
    buffer_puts(&d, ")}");
    while ((NPY_FIXED + d.len + 1) % NPY_ALIGN) buffer_puts(&d, " ");
    buffer_puts(&d, "\n");
    unsigned char head[NPY_FIXED] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)d.len, (unsigned char)(d.len >> 8)};
    buffer_append(b, head, sizeof head);
    buffer_append(b, d.data, d.len);
    buffer_release(&d);
}

static int write_array(const Task *t, const Workload *w, const TaskTensor *x, const double *values,
                       const char *dir, Error *err)
{
    int64_t shape[TASK_MAX_RANK];
    size_t n;
    if (task_shape(t, w, x, shape, err) || task_elements(t, w, x, &n, err)) return -1;
    Buffer b;
    buffer_init(&b, n * sizeof *values + 4096);
    npy_head(&b, x->rank, shape);
    buffer_append(&b, values, n * sizeof *values);
    char *path = memory_printf("%s/%s.npy", dir, x->name);
    int rc = file_write_atomic(path, b.data, b.len, err);
    free(path);
    buffer_release(&b);
    return rc;
}

/* The values of an input, which the caller frees. */
static double *draw(const Task *t, const Workload *w, int i, uint64_t seed, Error *err)
{
    const TaskTensor *x = &t->inputs[i];
    size_t n;
    if (task_elements(t, w, x, &n, err)) return NULL;
    if (n > EXAMPLE_MAX_ELEMENTS) {
        error_set(err, ERROR_LIMIT, "%s has %zu elements, at most %d expected", x->name, n,
                  EXAMPLE_MAX_ELEMENTS);
        return NULL;
    }
    void *raw = memory_array(n, dtype_size(x->dtype));
    double *values = memory_array(n, sizeof *values);
    int rc = task_draw(&(TaskCase){t, w, VARIANT_DRAWN, seed, 1.0}, i, raw, err);
    if (!rc) dtype_to_double(x->dtype, raw, values, n);
    free(raw);
    if (!rc) return values;
    free(values);
    return NULL;
}

/* Fills in[] and out[]. */
static int compute(Task *t, const Workload *w, uint64_t seed, double **in, double **out, Error *err)
{
    for (int i = 0; i < t->n_inputs; i++)
        if (!(in[i] = draw(t, w, i, seed, err))) return -1;
    for (int i = 0; i < t->n_outputs; i++) {
        size_t n;
        if (task_elements(t, w, &t->outputs[i], &n, err)) return -1;
        out[i] = memory_array(n, sizeof **out);
    }
    return task_reference(t, w, (const double *const *)in, out, err);
}

static int write_arrays(const Task *t, const Workload *w, double **in, double **out,
                        const char *dir, Error *err)
{
    if (file_mkdirs(dir, err)) return -1;
    for (int i = 0; i < t->n_inputs; i++)
        if (write_array(t, w, &t->inputs[i], in[i], dir, err)) return -1;
    for (int i = 0; i < t->n_outputs; i++)
        if (write_array(t, w, &t->outputs[i], out[i], dir, err)) return -1;
    return 0;
}

static int write_workload(Task *t, const Workload *w, uint64_t seed, const char *dir, Error *err)
{
    double **in = memory_array((size_t)t->n_inputs + 1, sizeof *in),
           **out = memory_array((size_t)t->n_outputs + 1, sizeof *out);
    int rc = compute(t, w, seed, in, out, err) || write_arrays(t, w, in, out, dir, err) ? -1 : 0;
    for (int i = 0; i < t->n_inputs; i++) free(in[i]);
    for (int i = 0; i < t->n_outputs; i++) free(out[i]);
    free(in);
    free(out);
    return rc;
}

/* Writes dir/N/NAME.npy, arrays of float64, for the N-th check workload and each input and output. */
static int example_write(Task *t, uint64_t seed, const char *dir, Error *err)
{
    int n = 0, rc = 0;
    for (int i = 0; i < t->n_workloads && !rc; i++) {
        if (t->workloads[i].role != ROLE_CHECK) continue;
        char *folder = memory_printf("%s/%d", dir, n++);
        rc = write_workload(t, &t->workloads[i], seed, folder, err);
        free(folder);
    }
    return rc ? error_prefix(err, "task %s", t->name) : 0;
}

static const char *split_name(const Task *t)
{
    return t->heldout ? "heldout" : "train";
}

/* The names by comma. */
static char *selection(const char **names, int n)
{
    Buffer only;
    buffer_init(&only, 1 << 16);
    for (int i = 0; i < n; i++) buffer_printf(&only, "%s%s", i ? "," : "", names[i]);
    return buffer_detach(&only);
}

static int list(const char *root, const char **names, int n_names)
{
    TaskSet set;
    Error err;
    char *only = selection(names, n_names);
    if (taskset_load(root, only, &set, &err)) log_die(&err);
    free(only);
    printf("%-24s %-5s %-8s %-10s %s\n", "name", "level", "split", "degenerate", "axes");
    for (int i = 0; i < set.n; i++) {
        const Task *t = set.tasks[i];
        printf("%-24s %-5d %-8s %-10s ", t->name, t->level, split_name(t),
               t->degenerate ? "yes" : "no");
        for (int a = 0; a < t->n_axes; a++) printf("%s%s", a ? ", " : "", t->axis_name[a]);
        putchar('\n');
    }
    taskset_release(&set);
    return 0;
}

static void print_tensor(const char *kind, const TaskTensor *x, int is_input)
{
    printf("%s %s %s[", kind, dtype_name(x->dtype), x->name);
    for (int i = 0; i < x->rank; i++) printf("%s%s", i ? ", " : "", x->shape[i]);
    printf("]%s%s\n", is_input ? ", drawn " : "", is_input ? draw_name(x->draw) : "");
}

static int show(const char *root, const char *name)
{
    TaskSet set;
    Error err;
    if (taskset_load(root, name, &set, &err)) log_die(&err);
    for (int i = 0; i < set.n; i++) {
        const Task *t = set.tasks[i];
        printf("%s: level %d, %s, %s%s\n%s\n\n", t->name, t->level, t->op_type, split_name(t),
               t->degenerate ? ", degenerate" : "", t->description);
        for (int j = 0; j < t->n_inputs; j++) print_tensor("input ", &t->inputs[j], 1);
        for (int j = 0; j < t->n_outputs; j++) print_tensor("output", &t->outputs[j], 0);
        for (int j = 0; j < t->n_workloads; j++) {
            char where[512];
            double bytes, flops;
            const Workload *w = &t->workloads[j];
            Tolerance by;
            task_workload_text(t, w, where, sizeof where);
            if (task_cost(t, w, &bytes, &flops, &err) ||
                task_tolerance(&(TaskCase){t, w, VARIANT_DRAWN, 0, 1.0}, 0, &by, &err))
                log_die(&err);
            printf("%s: at least %.0f bytes, %.0f flops; tolerance %.3g + %.3g*|expected|", where,
                   bytes, flops, by.atol, by.rtol);
            if (w->weight != 1) printf("; weight %g", w->weight);
            printf("\n");
        }
        printf("digest %s\n\n", t->digest);
        if (t->graph) printf("%s\n", t->reference_source);
        printf("%s", t->baseline_source);
    }
    taskset_release(&set);
    return 0;
}

/* Prints one line. A task that cannot be read is refused, like one that breaks a rule. */
static int gate_one(const char *path)
{
    Task *t;
    Error err;
    GateResult result;
    const char *name = strrchr(path, '/') + 1;
    if (task_load(path, &t, &err)) {
        printf("%s: refused: %s\n", name, err.text);
        return 1;
    }
    if (task_gate(t, &result, &err)) {
        printf("%s: refused: it cannot be judged: %s\n", name, err.text);
        result.refused = 1;
    } else if (result.refused) {
        printf("%s: refused: %s\n", name, result.reason);
    } else if (result.reason[0]) {
        printf("%s: accepted as degenerate: %s\n", name, result.reason);
    } else {
        printf("%s: accepted%s\n", name, t->degenerate ? " (tagged degenerate)" : "");
    }
    task_free(t);
    return result.refused;
}

static int gate(const char *root, const char **names, int n_names)
{
    char *only = selection(names, n_names), **paths;
    Error err;
    int n, refused = 0;
    if (taskset_paths(root, only, &paths, &n, &err)) log_die(&err);
    for (int i = 0; i < n; i++) refused += gate_one(paths[i]);
    taskset_paths_free(paths, n);
    free(only);
    return refused != 0;
}

static int example(const char *root, const char *name, const char *dir)
{
    TaskSet set;
    Error err;
    if (taskset_load(root, name, &set, &err)) log_die(&err);
    for (int i = 0; i < set.n; i++) {
        char *folder = memory_printf("%s/%s", dir, set.tasks[i]->name);
        if (example_write(set.tasks[i], 1, folder, &err)) log_die(&err);
        free(folder);
    }
    taskset_release(&set);
    return 0;
}

int main(int argc, char **argv)
{
    process_again_with("OMP_WAIT_POLICY", "passive", argv); /* threads sleep without work */
    memory_keep();
    const char *root = NULL, *output = NULL;
    Flag flags[] = {
        {"output", FLAG_TEXT, &output, "of example: the folder that is written"},
        {"task-root", FLAG_TEXT, &root, "folder of the tasks; else $QUERN_TASKS, else Quern's own"},
        {0}};
    FlagSpec spec = {.program = "quern-task",
                     .synopsis =
                         "list [NAME...] | show NAME | gate [NAME...] | example NAME -o DIR "
                         "[--task-root DIR]",
                     .about = "A NAME is of a task or of a set of them. list: the tasks there are. "
                              "show: one task, its workloads and its "
                              "baseline. gate: refuse tasks whose "
                              "checks a kernel passes that does no work; exit 1 if any is refused. "
                              "example: inputs and right results of the check workloads, as "
                              "DIR/TASK/N/TENSOR.npy.",
                     .flags = flags,
                     .min_words = 1,
                     .max_words = -1};
    const char **words = memory_array((size_t)argc, sizeof *words);
    int n = flags_parse(&spec, argc, argv, words), status = 2;
    if (!strcmp(words[0], "list"))
        status = list(root, words + 1, n - 1);
    else if (!strcmp(words[0], "show") && n == 2)
        status = show(root, words[1]);
    else if (!strcmp(words[0], "gate"))
        status = gate(root, words + 1, n - 1);
    else if (!strcmp(words[0], "example") && n == 2 && output)
        status = example(root, words[1], output);
    else
        flags_usage_error(&spec,
                          "expected list [NAME...], show NAME, gate [NAME...] or example NAME -o "
                          "DIR, found \"%s\" and %d more words",
                          words[0], n - 1);
    free(words);
    return log_close(status);
}
