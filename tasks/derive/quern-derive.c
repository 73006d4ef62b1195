/* quern-derive: writes the task.json of each draft. */
#include <stdio.h>
#include <stdlib.h>

#include "base/flags.h"
#include "base/log.h"
#include "base/memory.h"
#include "tasks/derive/draft_file.h"

int main(int argc, char **argv)
{
    derive_prepare(argv);
    const char *folder = NULL;
    const Flag flags[] = {{"output", FLAG_TEXT, &folder,
                           "folder of tasks; a folder NAME in it is made", .required = 1},
                          {0}};
    const FlagSpec spec = {
        .program = "quern-derive",
        .synopsis = "-o DIR DRAFT.json...",
        .about =
            "Writes DIR/NAME/task.json for each draft: a graph of operators, its axes and tensors. "
            "Workloads, draws and tolerances follow from the graph.",
        .flags = flags,
        .min_words = 1,
        .max_words = -1};
    const char **files = memory_array((size_t)argc, sizeof *files);
    int n = flags_parse(&spec, argc, argv, files), failed = 0;
    log_open("quern-derive");
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
