/* Fields of task.json, for the loader. Errors name file and field. */
#ifndef TASKS_TASK_FIELDS_H
#define TASKS_TASK_FIELDS_H

#include "base/json.h"
#include "tasks/task.h"

/* Refuses a field that is not in the NULL-terminated list. */
int task_known_fields(const json_t *obj, const char *const *known, const char *where, Error *err);
/* The index of text in names, or -1. */
int task_choose(const char *text, const char *const *names, int n, const char *what,
                const char *where, Error *err);

int task_read_constraints(Task *t, const json_t *root, const char *file, Error *err);
int task_read_axes(Task *t, const json_t *root, const char *file, Error *err);
/* Reads root's inputs or outputs into t; those that are read before an error count. */
int task_read_tensors(Task *t, const json_t *root, int inputs, const char *file, Error *err);

#endif
