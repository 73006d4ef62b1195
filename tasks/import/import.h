/* An exported program becomes a task: archive, program, lines of a graph, and derive_task. */
#ifndef TASKS_IMPORT_IMPORT_H
#define TASKS_IMPORT_IMPORT_H

#include "tasks/derive/derive.h"
#include "tasks/import/program.h"

typedef struct {
    const char *name;        /* of the task: an identifier of at most 63 bytes */
    const char *description; /* NULL: the graph as formulas */
    const char *const *tags;
    int n_tags, level, heldout;
    const Precision *precision; /* NULL: PyTorch's default */
    const char *budget;         /* base/precision.h; NULL: none */
    const DraftShape *shapes;   /* n_shapes (tasks/derive/shapes.h); none: the module's own sizes */
    int n_shapes;
} ImportOptions;

/* *text: task.json, which the caller frees. Errors name the operator or construct, and the line of the
 * module where the program says it. */
int import_file(const char *path, const ImportOptions *o, char **text, Error *err);

#endif
