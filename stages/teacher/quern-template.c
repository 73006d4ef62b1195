/* quern-template: prints kernels of the template teacher, to read them and for benchmarks. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "stages/teacher/template.h"
#include "tasks/designs.h"

static void print_texts(const TemplateKernel *k)
{
    for (int i = 0; i < k->n_choices; i++)
        fprintf(stderr, "%s%s=%s", i ? " " : "", k->choices[i].name, k->choices[i].value);
    fprintf(stderr, "%s%s\n%s\n%s\n", k->mistake ? " mistake=" : "", k->mistake_name, k->analysis,
            k->design);
}

typedef struct {
    const char *name, *output;
    const Task *task; /* NULL: only the family's name is known */
    double mistakes;
    int texts;
    Designs without;
} Options;

/* Writes one kernel to stdout, or to the file OUTPUT/TASK-SEED.cu. */
static int write_kernel(const Options *o, uint64_t seed, Error *err)
{
    TemplateKernel kernel;
    const TemplateDraw draw = {seed, o->mistakes, designs_of(&o->without, o->name)};
    if (o->task ? template_for_task(o->task, draw, &kernel, err)
                : template_generate(o->name, NULL, draw, &kernel, err))
        return -1;
    if (o->texts) print_texts(&kernel);
    int rc = 0;
    if (o->output) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s-%llu.cu", o->output, o->name, (unsigned long long)seed);
        rc = file_write_atomic(path, kernel.source, strlen(kernel.source), err);
    } else {
        fputs(kernel.source, stdout);
    }
    template_release(&kernel);
    return rc;
}

int main(int argc, char **argv)
{
    Options o = {0};
    const char *root = NULL, *without = NULL;
    int64_t seed = 1, count = 1;
    const Flag flags[] = {
        {.name = "task",
         .kind = FLAG_TEXT,
         .target = &o.name,
         .help = "task or operation type",
         .required = 1},
        {.name = "seed", .kind = FLAG_INT, .target = &seed, .help = "which kernel", .max = 1e15},
        {.name = "count",
         .kind = FLAG_INT,
         .target = &count,
         .help = "so many, of this seed and those after it",
         .min = 1,
         .max = 1e6},
        {.name = "output",
         .kind = FLAG_TEXT,
         .target = &o.output,
         .help = "folder to write TASK-SEED.cu to, not stdout"},
        {.name = "mistakes",
         .kind = FLAG_FLOAT,
         .target = &o.mistakes,
         .help = "share of kernels with a mistake",
         .max = 1},
        {.name = "texts",
         .kind = FLAG_BOOL,
         .target = &o.texts,
         .help = "choices, analysis and design on stderr"},
        {.name = "without",
         .kind = FLAG_TEXT,
         .target = &without,
         .help = "file of designs that are not drawn: lines of a task, or *, and NAME=VALUE..."},
        {.name = "task-root", .kind = FLAG_TEXT, .target = &root, .help = "folder of the tasks"},
        {0},
    };
    const FlagSpec spec = {.program = "quern-template",
                           .synopsis =
                               "--task NAME [--seed N] [--mistakes RATE] [--count N --output DIR]",
                           .about = "Prints candidates of the built-in template teacher.",
                           .flags = flags};
    const char *words[1];
    flags_parse(&spec, argc, argv, words);
    log_open("quern-template");
    Error err;
    TaskSet tasks = {0};
    if (without && designs_read(without, &o.without, NULL, &err)) log_die(&err);
    int at = taskset_need(&tasks, root, o.name, &err);
    if (at < 0 && (err.code != ERROR_UNKNOWN_NAME || !template_has_family(o.name, NULL)))
        log_die(&err);
    if (at >= 0) {
        o.task = tasks.tasks[at];
        o.name = o.task->name;
    }
    for (int64_t i = 0; i < count; i++)
        if (write_kernel(&o, (uint64_t)(seed + i), &err)) log_die(&err);
    taskset_release(&tasks);
    designs_release(&o.without);
    return log_close(EXIT_STATUS_OK);
}
