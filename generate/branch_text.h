/* Parts of a row that lie side by side, as those of a cat or of a padded tensor: a vector lies in a part as a
 * whole, so that one branch for the vector leaves out the work on the parts in which it does not lie. */
#ifndef GENERATE_BRANCH_TEXT_H
#define GENERATE_BRANCH_TEXT_H

#include "generate/writer.h"

/* Sets in[i] for each step of the pass that is computed in a branch, or once for the vector; else to 0.
 * A load alone, or one operation on it, has no branch: a select costs less. */
void branch_find(const Writer *w, const Pass *p, unsigned char *in);
/* The branches, before the loop over the vector's elements: the packs that they need, the elements of each
 * padded step in an array `u` of its number, and what is known once in a variable `u`. */
void branch_put(Writer *w, const unsigned char *in, const char *indent);
/* 1: the step is computed in a branch alone. A padded step is there behind it, too. */
int branch_hides(const Writer *w, const unsigned char *in, int step);
/* The head of a loop over the vector's elements. */
void branch_put_elements_head(Writer *w, const char *indent);

#endif
