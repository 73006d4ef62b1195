/* The description of a package as JSON: axes with their judged bounds, tensors, buffers, launches, and
 * the graph of the task where it has one. share/export/torch/plan.py reads it. */
#ifndef EXPORT_DESCRIPTION_H
#define EXPORT_DESCRIPTION_H

#include <jansson.h>

#include "base/buffer.h"
#include "export/package.h"

/* A new reference, or NULL. */
json_t *package_describe(const Package *p, Error *err);

/* Writes an object as a file of a package. Takes the reference. */
int package_write_json(const char *dir, const char *name, json_t *o, Error *err);

/* The lines of the task's graph, a borrowed array of root; NULL: the task has none. root is
 * task.json, a new reference that the caller drops. */
json_t *package_graph(const Package *p, json_t **root, Error *err);

/* A template of share/export/, as text. The caller frees it. */
char *package_template(const char *name, size_t *len, Error *err);

#endif
