/* Results that one kernel computes together because they read the same: what is called horizontal fusion. A
 * loss that is a sum over rows and a second one over the same rows read them once. */
#ifndef GENERATE_TOGETHER_H
#define GENERATE_TOGETHER_H

#include "generate/kernel.h"

enum { NODE_BEGUN = 1, NODE_WRITTEN = 2 };

/* other: nodes that kernels of the plan write, in the plan's order. done: by node, of the first n_done nodes:
 * NODE_BEGUN where its kernel is being written, NODE_WRITTEN where it lies in memory, 0 where neither is so.
 * only_stored: a node that is not to lie in memory already is none of them. */
typedef struct {
    const int *other;
    const unsigned char *done;
    int n_other, n_done, only_stored;
} Together;

/* Adds other results to a traced kernel of one result, whose operands lie in memory. Each has as many
 * elements, and its operands lie in memory too or are the kernel's result. It shares at least half of what it
 * reads with the kernel, or reads its result, or both are so small that a launch is what they cost. The gene
 * `join` of each decides. Nodes may be added to the graph. */
void together_join(Kernel *k, const Together *t);

#endif
