/* Exponentials of running sums. A running sum of drawn numbers is a random walk, and its exponential grows
 * beyond what small sizes show: at the timed ones some results are 10^20 times as large as others, and
 * float32 has no digits for both. What they depend on is drawn smaller then. */
#ifndef TASKS_DERIVE_EXPONENTIAL_H
#define TASKS_DERIVE_EXPONENTIAL_H

#include "tasks/derive/derivation.h"

/* Draws normal inputs on which such an exponential depends smaller, at every input scale, until the largest
 * at the running sums of the timed sizes is at most some 10^4. UNSUPPORTED: it stays larger. */
int exponential_calm(Derivation *v, const Sizes *time, Error *err);

/* Sizes with the timed ones' running sums in place of `deep`, where these are shorter and exponentiated. */
void exponential_deepen(const Derivation *v, const Sizes *time, Sizes *deep);

#endif
