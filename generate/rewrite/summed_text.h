/* Sums of products and of convolutions as lines of a graph. */
#ifndef GENERATE_REWRITE_SUMMED_TEXT_H
#define GENERATE_REWRITE_SUMMED_TEXT_H

#include "generate/rewrite/graph_lines.h"
#include "tasks/graph/summed.h"

/* Writes what the replaced line, a sum or mean, is of the product's factors. 0; 1: it stays, and no line was
 * written; -1: l->failed is set. */
int sums_of_product(Lines *l, const Summed *s);
int sums_of_convolution(Lines *l, const Summed *s);
/* The same of a pool behind a convolution, which graph_pooled found. */
int averages_of_convolution(Lines *l, int convolution);
/* Scales and shifts a sum y as the operators between the product and the sum do. */
void sums_put_chain(Lines *l, const Summed *s, char y[GRAPH_NAME]);

#endif
