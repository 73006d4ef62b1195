/* Which symbolic sizes of a program stay free, and what holds between those that do. */
#ifndef TASKS_IMPORT_PINS_H
#define TASKS_IMPORT_PINS_H

#include "tasks/import/program.h"

enum { PINS_MAX_CONSTRAINTS = 64 };

/* Pins the symbols that the module itself fixes: a guard such as `s0 // 8 == 96`, a least size above
 * PINS_LEAST, an argument that has no integer expression, such as 1 / sqrt(s0), or
 * a table of which the graph computes the rows. */
int pins_find(Program *p, Error *err);

/* The guards that small sizes can break, as expressions over axes, which have their names by now.
 * Those that hold whenever sizes are within their ranges, and those that only say that a size is not 0
 * or 1, or that take a long text, are left out: shapes are checked again when a graph is bound. The
 * caller frees the texts. */
void pins_constraints(Program *p, char *out[PINS_MAX_CONSTRAINTS], int *n);

#endif
