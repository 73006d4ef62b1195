/* Products of matrices as kernels: an op line's sums on tensor cores, with what a kernel computes of each of
 * them in the same launch. */
#ifndef GENERATE_PRODUCT_H
#define GENERATE_PRODUCT_H

#include "generate/kernel.h"
#include "generate/triangle.h"
#include "ops/op_product.h"

/* One tensor of a product: how far its elements are apart along the dimensions of a group, which are one
 * dimension, or 0. In elements of the node's memory, which is in C order. node -1: there is none. */
typedef struct {
    int node;
    Size offset, step[PRODUCT_GROUPS];
} ProductTensor;

enum { CONVOLUTION = 1, DEPTHWISE };
enum { FOLDED_WINDOWS = PRODUCT_GROUPS };

/* sum = alpha * (the sum over the depth) + beta * addend. The result, of the kept node `of`, is in C order:
 * batch, rows, columns. dtype: of all of its tensors. By ROUTE_TENSOR a product of a half type has tiles of
 * `tile` columns, from `stages` tiles of its factors, which come by `copy`; `parts` blocks share a sum. */
typedef struct {
    int of, route, tile, stages, parts, copy;
    int convolution; /* as convolve.h says; DEPTHWISE: as depthwise.h says */
    int box[3]; /* of a convolution by COPY_TENSOR: the outputs of a tile along each dimension */
    int quads; /* and how many times four channels of what all taps read come at once; 0: of each tap */
    int halo
        [3]; /* and how much more of the input than of the outputs that is, along each dimension */
    int folded; /* of a convolution, what the kernel folds: PRODUCT_ROWS or PRODUCT_COLUMNS, into `parts`,
                 * or FOLDED_WINDOWS; 0: nothing */
    int window[3]; /* of outputs, which a pool behind it folds, and its tiles have whole; 0: none */
    Size pooled[3]; /* and how many of these there are along each dimension */
    int by_classes; /* such a window has an output of each class, at one place: the others are 1 */
    Fold fold;
    int stat
        [3]; /* of a convolution: the parts of spreads, of means and of counts of what the kernel's text
                  * makes of its results, which it stores; 0: none */
    int packed; /* and how the result is laid out, which other convolutions read (packing.h) */
    Dtype dtype;
    ProductTensor side[PRODUCT_OPERANDS];
    double alpha, beta;
    Size count[PRODUCT_GROUPS];
} MatrixProduct;

/* What a traced kernel has of products, of which it needs each element once and at its own place: n steps of
 * it. Two are of half types and share their left factor. */
enum { PRODUCT_JOINED = 2 };
/* after: what a kernel computes of each window of a pool behind a convolution, which is its step number
 * `pooled`; NULL: the pool is the result. */
typedef struct {
    int n, step[PRODUCT_JOINED], pooled;
    MatrixProduct m[PRODUCT_JOINED];
    Kernel *after;
} ProductJoin;

/* 1: a kept node is a product that a kernel can compute. */
int product_read(const Nodes *n, int node, MatrixProduct *out);
/* Sets the route that the schedule has for it, with its tiles; by default the fastest, by the timed sizes.
 * joined: so many such products are in one kernel with what follows; 0: nothing follows. */
void product_choose(const Nodes *n, MatrixProduct *m, int joined);
/* The time of their kernels by their route, and how many there are, by the timed sizes. */
double product_us(const Nodes *n, const ProductJoin *j);
int product_launches(const ProductJoin *j);
/* Each warp group has tiles of its own, and makes results of so many products while the other multiplies. */
int product_turns(const MatrixProduct *m, int joined);
/* Finds the products of a traced kernel; n is 0 where there is none. Routes are not chosen. */
void product_join(const Kernel *k, ProductJoin *out);
/* By triangles of the graph: where the sums of a kernel with one product are needed, column beside row, and
 * where its factors are not zero, k beside row and column beside k. */
typedef struct {
    Band sums, left, right;
} ProductBands;
ProductBands product_bands(const Kernel *k, const ProductJoin *j);
/* The share of a product's terms that they leave, by the timed sizes. */
double product_left(const Kernel *k, const ProductJoin *j);
/* Appends the kernel that computes the products, by their route, and from them all of k. The products'
 * tensors lie in memory. */
int product_write(const ProductJoin *j, Kernel *k, KernelText *t, Error *err);
/* Puts what makes halves of float32 elements into the source, once. */
void product_put_halves(KernelText *t);
/* Appends the buffers that all kernels of products share. */
void product_buffers(KernelText *t);

#endif
