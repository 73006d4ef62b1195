/* The arguments of a program's node, and one of them as text of a graph's line. */
#ifndef TASKS_IMPORT_ARGUMENT_H
#define TASKS_IMPORT_ARGUMENT_H

#include "tasks/import/program.h"

/* The argument of a name, which the node keeps; NULL: the node has none. */
json_t *argument_of(const json_t *node, const char *name);
/* Appends the argument. names: by the program's name of a tensor, its name in lines; a name that is not
 * there is an error, so that a node uses only what comes before it. 1: it was written; 0: it says where
 * or how a tensor is stored, which a graph does not; -1: *err. */
int argument_write(Program *p, const json_t *arg, const json_t *names, Buffer *out, Error *err);

/* Writes a size {"as_int"} or {"as_expr"}: an expression over axes, or a number. */
int argument_size(Program *p, const json_t *value, Buffer *out, Error *err);
void argument_real(double v, Buffer *out); /* with a point or an exponent, and exact */

#endif
