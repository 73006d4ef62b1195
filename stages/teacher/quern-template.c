/* quern-template: prints kernels of the template teacher, to read them and for benchmarks. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "stages/teacher/template.h"

static void print_texts(const TemplateKernel *k)
{
    for (int i = 0; i < k->n_choices; i++)
        fprintf(stderr, "%s%s=%s", i ? " " : "", k->choices[i].name, k->choices[i].value);
    fprintf(stderr, "%s%s\n%s\n%s\n", k->mistake ? " mistake=" : "", k->mistake_name, k->analysis,
            k->design);
}

/* Writes one kernel to stdout, or to the file OUTPUT/TASK-SEED.cu. */
static int write_kernel(const char *task, uint64_t seed, double mistakes, int texts,
                        const char *output, Error *err)
{
    TemplateKernel kernel;
    if (template_generate(task, NULL, seed, mistakes, &kernel, err)) return -1;
    if (texts) print_texts(&kernel);
    int rc = 0;
    if (output) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s-%llu.cu", output, task, (unsigned long long)seed);
        rc = file_write_atomic(path, kernel.source, strlen(kernel.source), err);
    } else {
        fputs(kernel.source, stdout);
    }
    template_release(&kernel);
    return rc;
}

int main(int argc, char **argv)
{
    const char *task = NULL, *output = NULL;
    int64_t seed = 1, count = 1;
    double mistakes = 0;
    int texts = 0;
    const Flag flags[] = {
        {.name = "task",
         .kind = FLAG_TEXT,
         .target = &task,
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
         .target = &output,
         .help = "folder to write TASK-SEED.cu to, not stdout"},
        {.name = "mistakes",
         .kind = FLAG_FLOAT,
         .target = &mistakes,
         .help = "share of kernels with a mistake",
         .max = 1},
        {.name = "texts",
         .kind = FLAG_BOOL,
         .target = &texts,
         .help = "choices, analysis and design on stderr"},
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
    for (int64_t i = 0; i < count; i++)
        if (write_kernel(task, (uint64_t)(seed + i), mistakes, texts, output, &err)) log_die(&err);
    return log_close(EXIT_STATUS_OK);
}
