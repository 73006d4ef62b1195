/* Sums over the results of a product or a convolution, which are products of sums of its factors. */
#ifndef TASKS_GRAPH_SUMMED_H
#define TASKS_GRAPH_SUMMED_H

#include "tasks/graph/graph.h"

enum { SUMMED_CHAIN = 8 };

/* product: the node of a matrix product or of a convolution, whose results a sum or mean reads, and nothing
 * else does. chain: the nodes between, from the product on: products and quotients by numbers, and of a
 * matrix product sums and differences with a vector. dims: of the product's result, bits of the dimensions
 * that are folded: of a matrix product the last one, of a convolution some of its window's. terms: of a sum
 * of the results; group: so many neighbours make a mean each; 0: all do. */
typedef struct {
    int product, n_chain, chain[SUMMED_CHAIN];
    unsigned dims;
    int64_t terms;
    int group;
} Summed;

/* 1: the node is such a sum; 0: it is not. */
int graph_summed(const GraphBound *b, int node, Summed *out);

/* The node of a convolution whose filters have one tap, right before a pool that averages its results and of
 * which alone it is read, with strides; -1: there is none. stride: of both dimensions together. */
int graph_pooled(const GraphBound *b, int node, int64_t *stride);

/* As graph_cost, with the flops that are left of summed products, of convolutions of averages, and of matrix
 * products whose factors are triangles of the graph, or of which nothing but a triangle is read, and without
 * what no settled choice (settled.h) needs. */
int graph_least_cost(const GraphBound *b, OpCost *out, Error *err);

#endif
