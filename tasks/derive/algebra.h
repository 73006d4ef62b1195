/* What algebra says of a graph: rotations that it keeps, sums that are exact, work that it removes. */
#ifndef TASKS_DERIVE_ALGEBRA_H
#define TASKS_DERIVE_ALGEBRA_H

#include "tasks/derive/task_text.h"

/* Sets d->rotates and d->exact where they hold. "turns" of a costly graph is only likely: where the gate
 * refuses it, algebra_rotates finds what holds. */
int algebra_extremes(const Derivation *v, Description *d, Error *err);
void algebra_rotates(const Derivation *v, Description *d);
/* Tags the task where an operator's result does not depend on what it is computed from, or where less
 * work gives the same result: a sum over the rows or columns of a matrix product, a product with a
 * diagonal matrix. */
int algebra_degenerate(const Derivation *v, Description *d, Error *err);

#endif
