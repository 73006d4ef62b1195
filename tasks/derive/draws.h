/* How inputs are drawn, from what the graph does with them. */
#ifndef TASKS_DERIVE_DRAWS_H
#define TASKS_DERIVE_DRAWS_H

#include "tasks/derive/derivation.h"

/* Sets draw and its numbers of the inputs that have none. An index has the range that fits all of the
 * n sizes. */
int draws_choose(Derivation *v, const Sizes *sizes, int n, Error *err);

#endif
