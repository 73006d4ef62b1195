/* Choices whose condition is one number, whatever the inputs are: nothing needs what is not chosen. */
#ifndef TASKS_GRAPH_SETTLED_H
#define TASKS_GRAPH_SETTLED_H

#include "tasks/graph/graph.h"

/* The argument, of the node's type and shape, that all of its result is; -1: it is none. */
int graph_settled(const GraphBound *b, int node);

/* By node: 1 where an output needs it. The caller frees the array. */
unsigned char *graph_needed(const GraphBound *b);

#endif
