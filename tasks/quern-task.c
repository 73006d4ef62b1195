/* quern-task: lists, shows and gates tasks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/process.h"
#include "tasks/example.h"
#include "tasks/gate.h"

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
    log_open("quern-task");
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
