/* What a graph's operators index, and with what. */
#ifndef TASKS_DERIVE_INDICES_H
#define TASKS_DERIVE_INDICES_H

#include "tasks/graph/graph.h"

/* Called with a value that an operator takes as indices or classes, and the number of those that there
 * are. */
typedef void IndexSeen(void *ctx, int value, int64_t size);
void indices_each(const GraphBound *b, IndexSeen *f, void *ctx);

/* Indices that the graph makes itself, a range or the places of sorted elements, are within what they
 * index, as far as shapes tell: 1, or 0. */
int indices_fit(const GraphBound *b);

#endif
