/* Names of axes and tensors in a task: C identifiers, each given once. */
#ifndef TASKS_IMPORT_NAMES_H
#define TASKS_IMPORT_NAMES_H

#include "tasks/import/program.h"

/* Writes a free identifier of fewer than `size` bytes for `wish`, and takes it. */
void names_choose(json_t *taken, const char *wish, char *out, size_t size);
/* Names the axes of all symbols that are not pinned, after the dimensions in which they first stand. */
void names_axes(Program *p, json_t *taken);

#endif
