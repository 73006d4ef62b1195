/* How errors that are measured at some sizes grow to larger ones. */
#ifndef TASKS_DERIVE_GROWTH_H
#define TASKS_DERIVE_GROWTH_H

#include "tasks/derive/honest.h"
#include "tasks/derive/sizes.h"

/* exponent: of the number of terms, with which errors grow along one running sum (growth_exponent). */
HonestGrowth growth_of(const Derivation *v, const Sizes *to, const Sizes *from, double exponent);

int64_t growth_terms(const Derivation *v, const Sizes *at); /* of the longest sum */

/* By the honest variants at some sizes and at smaller ones with shorter sums: 0 to 1.5; 1: it is not known.
 * t: the task of v. */
double growth_exponent(const Derivation *v, const Task *t, const Sizes *at);

#endif
