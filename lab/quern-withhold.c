/* quern-withhold: writes which genes the generator keeps to itself. */
#include <stdio.h>

#include "base/file.h"
#include "base/flags.h"
#include "base/log.h"
#include "lab/withhold.h"

enum { MAX_FILE = 16 << 20 };

int main(int argc, char **argv)
{
    const char *only = NULL, *root = NULL, *output = NULL;
    int names = 0;
    const Flag flags[] = {{"tasks", FLAG_TEXT, &only, "names, comma separated; all when left out"},
                          {"task-root", FLAG_TEXT, &root, "folder of the tasks"},
                          {"names", FLAG_BOOL, &names, "the tasks' names alone, by comma"},
                          {"output", FLAG_TEXT, &output, "file to write, in place of stdout"},
                          {0}};
    const FlagSpec spec = {.program = "quern-withhold",
                           .synopsis = "[--tasks LIST] [--output FILE]",
                           .about = "Print the fast designs of half of the train tasks, for "
                                    "quern-collect --without.",
                           .flags = flags};
    flags_parse(&spec, argc, argv, NULL);
    Error err;
    TaskSet tasks;
    Buffer text;
    buffer_init(&text, MAX_FILE);
    if (taskset_load(root, only, &tasks, &err)) log_die(&err);
    if (!(names ? withhold_names(&tasks, &text) : withhold_write(&tasks, &text))) {
        error_set(&err, ERROR_INVALID, "no train task among those of --tasks has withheld designs");
        log_die(&err);
    }
    if (!output)
        fputs(text.data, stdout);
    else if (file_write_atomic(output, text.data, text.len, &err))
        log_die(&err);
    buffer_release(&text);
    taskset_release(&tasks);
    return log_close(0);
}
