/* Depthwise convolutions of two dimensions between two convolutions with kernels, and pointwise operators:
 * with four channels of a place together, as those kernels read and write them. */
#ifndef GENERATE_DEPTHWISE_H
#define GENERATE_DEPTHWISE_H

#include "generate/packing.h"

/* Makes such folds kept nodes of their lines. After nodes_read. */
void depthwise_nodes(Nodes *n);
/* 1: a kept node is such a convolution: rows are channels, columns the outputs of an image. */
int depthwise_read(const Nodes *n, int node, MatrixProduct *out);
/* As product_choose; microseconds by the timed sizes. */
void depthwise_choose(const Nodes *n, const char *key, MatrixProduct *m);
double depthwise_us(const Nodes *n, const MatrixProduct *m);
/* As product_write. */
int depthwise_write(ProductWriter *w);

#endif
