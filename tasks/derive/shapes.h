/* The timed sizes that a user asks for, instead of the module's own: "rows=1 rows=64:3 rows=8192,cols=512".
 * Each word has axes by comma and, behind a colon, a weight; axes that it does not name have the module's
 * size. */
#ifndef TASKS_DERIVE_SHAPES_H
#define TASKS_DERIVE_SHAPES_H

#include "tasks/derive/derivation.h"

/* Reads n words, at most TASK_MAX_TIMED. The caller frees *out; its names are in `text`. */
int shapes_read(const char *text, DraftShape **out, int *n, Error *err);

/* torch.export gives every free size at least 2, since it treats 1 as special: an axis of which a shape has
 * size 1 may have it. */
void shapes_allow_one(Derivation *v);

/* The sizes of the draft's shape number i. Errors name the axes that there are, or say why the graph has no
 * such sizes. */
int shapes_sizes(const Derivation *v, int i, Sizes *out, Error *err);

#endif
