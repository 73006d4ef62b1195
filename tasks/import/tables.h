/* Tables of which the graph computes the rows. */
#ifndef TASKS_IMPORT_TABLES_H
#define TASKS_IMPORT_TABLES_H

#include "tasks/import/program.h"

/* Pins the sizes along which a tensor is read at indices that numbers of the graph bound, as
 * min(bucket, 15) does: of other sizes some indices were none. Indices that a caller gives, or that
 * follow from sizes, are within what there is. */
int tables_pin(Program *p, Error *err);

#endif
