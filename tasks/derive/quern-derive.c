/* quern-derive: writes the task.json of each draft, or the timed tolerances of tasks that are there. */
#include <stdio.h>
#include <stdlib.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "tasks/derive/again.h"
#include "tasks/derive/draft_file.h"

/* Of all tasks that the words name. Returns whether one failed. */
static int again(const char *root, const char *const *words, int n)
{
    int failed = 0, changed;
    Error err;
    for (int i = 0; i < n; i++) {
        TaskSet set;
        if (taskset_load(root, words[i], &set, &err)) log_die(&err);
        for (int k = 0; k < set.n; k++) {
            Task *t = set.tasks[k];
            if (!t->graph) continue;
            if (!derive_again(t, &changed, &err)) {
                printf("%s: %s\n", t->name, changed ? "written" : "unchanged");
                fflush(stdout);
                continue;
            }
            log_warn("%s", err.text);
            failed = 1;
        }
        taskset_release(&set);
    }
    return failed;
}

int main(int argc, char **argv)
{
    derive_prepare(argv);
    const char *folder = NULL, *root = NULL;
    int is_again = 0;
    const Flag flags[] = {
        {"output", FLAG_TEXT, &folder, "folder of tasks; a folder NAME in it is made"},
        {"again", FLAG_BOOL, &is_again,
         "measure the timed tolerances of tasks or sets that are there"},
        {"task-root", FLAG_TEXT, &root, "with --again: another folder of tasks"},
        {0}};
    const FlagSpec spec = {
        .program = "quern-derive",
        .synopsis = "-o DIR DRAFT.json... | --again SET...",
        .about =
            "Writes DIR/NAME/task.json for each draft: a graph of operators, its axes and tensors. "
            "Workloads, draws and tolerances follow from the graph. --again writes the timed "
            "tolerances of each task.json again.",
        .flags = flags,
        .min_words = 1,
        .max_words = -1};
    const char **files = memory_array((size_t)argc, sizeof *files);
    int n = flags_parse(&spec, argc, argv, files), failed = 0;
    log_open("quern-derive");
    if (is_again == (folder != NULL))
        flags_usage_error(&spec, "either --output or --again is expected");
    if (is_again) failed = again(root, files, n);
    if (is_again) n = 0;
    for (int i = 0; i < n; i++) {
        DraftFile f;
        Error err;
        if (draft_file_read(files[i], &f, &err)) log_die(&err);
        if (derive_write(&f.draft, folder, &err)) {
            log_warn("%s", err.text);
            failed = 1;
        }
        draft_file_release(&f);
    }
    free(files);
    return log_close(failed);
}
