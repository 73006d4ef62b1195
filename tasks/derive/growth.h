/* How errors that are measured at some sizes grow to larger ones. */
#ifndef TASKS_DERIVE_GROWTH_H
#define TASKS_DERIVE_GROWTH_H

#include "tasks/derive/honest.h"
#include "tasks/derive/sizes.h"

HonestGrowth growth_of(const Derivation *v, const Sizes *to, const Sizes *from);

#endif
