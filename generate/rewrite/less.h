/* Graphs that do less with the same results: a sum over dimensions of a product or of a convolution becomes
 * one of the sums of its factors, and averages of a convolution with one tap a convolution of averages. Real
 * numbers have these equalities; of infinities of both signs a sum of products is no number, and a product of
 * sums may be one. */
#ifndef GENERATE_REWRITE_LESS_H
#define GENERATE_REWRITE_LESS_H

#include "generate/first.h"

/* As generate_first, of the graph that does less, where there is one that can be written. */
int generate_least(const Task *task, Genes *genes, Estimate *estimate, Generated *out, Error *err);

/* The task with such a graph, which rewrite_free frees; it shares all else with t, which outlives it. NULL:
 * nothing is to be had, or the schedule undoes it (genes may be NULL). UNSUPPORTED: as size_open. */
int rewrite_task(const Task *t, Genes *genes, Task **out, Error *err);
void rewrite_free(Task *t); /* NULL is allowed */

#endif
