/* quern-kernel: prints the generator's candidate of a task, by a schedule or its defaults. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "generate/first.h"
#include "tasks/task.h"

enum { SCHEDULE_MAX = 1 << 20 };

/* A schedule: lines, or a file that has some. */
static int read_schedule(const char *given, Genes *g, Error *err)
{
    Buffer b;
    if (strstr(given, "//@")) return genes_read(g, given, strlen(given), err);
    buffer_init(&b, SCHEDULE_MAX);
    int rc = file_read(given, SCHEDULE_MAX, &b, err);
    if (!rc) rc = genes_read(g, b.data, b.len, err);
    buffer_release(&b);
    return rc;
}

static int check_used(const Genes *g, Error *err)
{
    const GenePoint *p = genes_unused(g);
    if (!p) return 0;
    return error_set(err, ERROR_INVALID,
                     "schedule of %s: %s=%d is no choice there; quern-kernel without --schedule "
                     "prints the lines of all choices",
                     p->of, gene_row(p->gene)->name, p->value);
}

int main(int argc, char **argv)
{
    const char *name = NULL, *root = NULL, *schedule = NULL;
    const Flag flags[] = {
        {.name = "task", .kind = FLAG_TEXT, .target = &name, .help = "task", .required = 1},
        {.name = "task-root", .kind = FLAG_TEXT, .target = &root, .help = "folder of the tasks"},
        {.name = "schedule",
         .kind = FLAG_TEXT,
         .target = &schedule,
         .help =
             "`//@ schedule` lines, or a file with some, such as a kernel; defaults if not given"},
        {0},
    };
    const FlagSpec spec = {.program = "quern-kernel",
                           .synopsis = "--task NAME [--schedule LINES]",
                           .about = "Prints the kernel generator's candidate of a task.",
                           .flags = flags};
    const char *words[1];
    flags_parse(&spec, argc, argv, words);
    log_open("quern-kernel");
    Error err;
    TaskSet tasks = {0};
    Genes genes = {0};
    Generated g;
    int at = taskset_need(&tasks, root, name, &err);
    if (at < 0 || (schedule && read_schedule(schedule, &genes, &err)) ||
        generate_first(tasks.tasks[at], &genes, NULL, &g, &err))
        log_die(&err);
    if (check_used(&genes, &err)) log_die(&err);
    fputs(g.source, stdout);
    free(g.source);
    genes_free(&genes);
    taskset_release(&tasks);
    return log_close(EXIT_STATUS_OK);
}
