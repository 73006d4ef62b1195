/* Convolutions as the library computes them fastest: with channels last, between buffers that lie so, and
 * without a bias, whose sum is pointwise. What a convolution reads is brought into that order by the kernel
 * that computes it, or by one that packs it; what reads its result finds other strides. */
#ifndef GENERATE_LAYOUT_H
#define GENERATE_LAYOUT_H

#include "generate/kernel.h"
#include "ops/op_convolution.h"

/* Rewrites the nodes that convolutions read and write, after nodes_read. In n->kept a bias becomes -1. */
void layout_nodes(Nodes *n);

/* The dimension of a node along which its elements lie side by side in the memory that they are made of; -1:
 * it has but one element. */
int layout_nearest(const Nodes *n, int node);

/* The node to store in place of one that a kernel computes for others: it has channels last where what it is
 * made of has. */
int layout_stored(Nodes *n, int node);

/* A plan's line that makes `to`, the tensor, of memory with channels last: or, where `back`, that memory of
 * the tensor. */
void layout_put_permuted(Buffer *plan, const char *to, int rank, const char *from, int back);

/* A fold of the kernel that should lie in memory before it, because the results are written along another
 * axis than most elements are read; -1: none. */
int layout_apart(const Kernel *k);

/* Writes a kernel without folds whose result lies along another axis than some of what it reads: a block
 * brings a tile of that through shared memory. 1: done; 0: kernel_write has to write it; -1: *err. */
int layout_write(Kernel *k, KernelText *t, Error *err);

/* The microseconds of such a kernel, which reads and writes so many bytes together. */
double layout_us(double bytes);
/* The library's seconds at the timed sizes, with TF32, or with channels last. */
double layout_library_time(const Convolution *v, int tf32, int last);

#endif
