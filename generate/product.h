/* Products of matrices as kernels: an op line's sums on tensor cores, with what a kernel computes of each of
 * them in the same launch. */
#ifndef GENERATE_PRODUCT_H
#define GENERATE_PRODUCT_H

#include "generate/kernel.h"
#include "ops/op_product.h"

/* One tensor of a product: how far its elements are apart along the dimensions of a group, which are one
 * dimension, or 0. In elements of the node's memory, which is in C order. node -1: there is none. */
typedef struct {
    int node;
    Size offset, step[PRODUCT_GROUPS];
} ProductTensor;

/* sum = alpha * (the sum over the depth) + beta * addend. The result, of the kept node `of`, is in C order:
 * batch, rows, columns. */
typedef struct {
    int of, route;
    ProductTensor side[PRODUCT_OPERANDS];
    double alpha, beta;
    Size count[PRODUCT_GROUPS];
} MatrixProduct;

/* 1: a kept node is a product that a kernel can compute. */
int product_read(const Nodes *n, int node, MatrixProduct *out);
/* The route that the schedule has for it; by default the fastest one, by the timed sizes. */
int product_choose(const Nodes *n, const MatrixProduct *m);
/* The time of its kernels by its route, and how many there are, by the timed sizes. */
double product_us(const MatrixProduct *m);
int product_launches(const MatrixProduct *m);
/* The step of a traced kernel that is a product, of which the kernel needs each element once and at its own
 * place; -1: there is none. */
int product_step(const Kernel *k);
/* Appends the kernel that computes the product, by its route, and from it all of k. step: as product_step.
 * The product's tensors lie in memory. */
int product_write(const MatrixProduct *m, Kernel *k, int step, KernelText *t, Error *err);
/* Appends the buffers that all kernels of products share. */
void product_buffers(KernelText *t);

#endif
