/* Which line of a graph gives the first result that is not finite. */
#ifndef TASKS_DERIVE_BROKEN_H
#define TASKS_DERIVE_BROKEN_H

#include "tasks/derive/derivation.h"

/* The node, at some sizes and for the inputs as they are drawn now: the first whose arguments are finite and
 * whose result is not, numbers that it is asked to fill in left out; else the first that gives a NaN. -1:
 * none. */
int broken_node(const Derivation *v, const Sizes *s);

#endif
