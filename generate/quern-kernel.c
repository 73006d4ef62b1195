/* quern-kernel: prints the generator's first candidate of a task. */
#include <stdio.h>
#include <stdlib.h>

#include "base/flags.h"
#include "base/log.h"
#include "generate/first.h"
#include "tasks/task.h"

int main(int argc, char **argv)
{
    const char *name = NULL, *root = NULL;
    const Flag flags[] = {
        {.name = "task", .kind = FLAG_TEXT, .target = &name, .help = "task", .required = 1},
        {.name = "task-root", .kind = FLAG_TEXT, .target = &root, .help = "folder of the tasks"},
        {0},
    };
    const FlagSpec spec = {.program = "quern-kernel",
                           .synopsis = "--task NAME",
                           .about = "Prints the kernel generator's first candidate of a task.",
                           .flags = flags};
    const char *words[1];
    flags_parse(&spec, argc, argv, words);
    log_open("quern-kernel");
    Error err;
    TaskSet tasks = {0};
    Generated g;
    int at = taskset_need(&tasks, root, name, &err);
    if (at < 0 || generate_first(tasks.tasks[at], &g, &err)) log_die(&err);
    fputs(g.source, stdout);
    free(g.source);
    taskset_release(&tasks);
    return log_close(EXIT_STATUS_OK);
}
