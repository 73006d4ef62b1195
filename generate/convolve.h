/* Convolutions of float32 tensors, where PyTorch may use TF32, as products: filters by what they read. */
#ifndef GENERATE_CONVOLVE_H
#define GENERATE_CONVOLVE_H

#include "generate/packing.h"

/* 1: a kept node is a convolution that a kernel can compute, as a product: rows are filters, columns the
 * outputs of an image. */
int convolve_read(const Nodes *n, int node, MatrixProduct *out);
/* 1: the kernel of a convolution makes, with pointwise operators, what a kept node reads, that of another one
 * reads what they make of it, and nothing else reads either. */
int convolve_around(const Nodes *n, int kept, int input);
/* As product_choose. */
void convolve_choose(const Nodes *n, const char *key, MatrixProduct *m);
/* Microseconds by the timed sizes. */
double convolve_us(const Nodes *n, const MatrixProduct *m);
/* In how many parts the kernel of a convolution makes a fold of what it computes, which nothing else needs;
 * 0: there is no such kernel. */
int convolve_parts(const Nodes *n, int fold);
/* 1: it makes the fold, a pool whose windows its tiles have, and nothing stores what is pooled. */
int convolve_pools(const Nodes *n, int fold);
/* The same of a fold's parts, or of such a pool: the convolution, and the node of the elements that are
 * folded, which have its shape. Returns that; -1: they are others'. */
int convolve_folded(const Nodes *n, int parts, MatrixProduct *out);
/* Means and spreads of channels, or of groups of them, that a kernel of a convolution makes while it stores
 * its results: their folds become folds of its parts, where a pass over the results takes longer by the timed
 * sizes. After layout_nodes. */
void convolve_statistics(Nodes *n);
/* The statistics of a convolution: sets out->stat and out->parts. Returns the node that they are of, of its
 * shape; -1: it has none. */
int convolve_measured(const Nodes *n, int kept, MatrixProduct *out);
/* The layout in which kernels of convolutions read a node, which nothing else reads. */
PackedLayout convolve_packed(const Nodes *n, int node);
/* As product_write. */
int convolve_write(ProductWriter *w);

#endif
