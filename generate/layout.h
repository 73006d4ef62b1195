/* Convolutions as the library computes them fastest: with channels last, between buffers that lie so, and
 * without a bias, whose sum is pointwise. What a convolution reads is brought into that order by the kernel
 * that computes it, or by one that packs it; what reads its result finds other strides. */
#ifndef GENERATE_LAYOUT_H
#define GENERATE_LAYOUT_H

#include "generate/kernel.h"
#include "ops/op_convolution.h"

/* Rewrites the nodes that convolutions read and write, after nodes_read. In n->kept a bias becomes -1. */
void layout_nodes(Nodes *n);

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
