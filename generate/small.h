/* Products of many small float32 matrices: einsums of two tensors whose batch has several dimensions, which
 * a library would have to copy into another order first. */
#ifndef GENERATE_SMALL_H
#define GENERATE_SMALL_H

#include "generate/kernel.h"
#include "ops/op_product.h"

/* Letters of the result in its order, then those that are summed. step: how far elements of a tensor in C
 * order are apart along one, or 0. dim: of a tensor; -1: it has none. tensor: an operand's place among the
 * call's. terms: of a sum, at the timed sizes; depth: the same as a size. */
typedef struct {
    int n, n_result, tensor[2];
    int64_t terms;
    Size depth;
    struct {
        ProductGroup group;
        int dim[2];
        Size size, step[2];
    } letter[OP_MAX_RANK];
} Einsum;

/* call: at every binding. 1: it is an einsum of two tensors without traces and broadcasts. */
int einsum_read(const OpCall *const *call, Einsum *out);

typedef struct {
    int of, node[2]; /* the kept node, and those whose memory the factors are */
    Einsum e;
    Size offset[2], step[2][OP_MAX_RANK]; /* in their memory */
} SmallProduct;

/* 1: a kept node is such a product, and the schedule has a kernel for it. */
int small_read(const Nodes *n, int node, SmallProduct *out);
double small_us(const SmallProduct *s);
/* Appends the kernel. The factors lie in memory. */
int small_write(const SmallProduct *s, Nodes *n, KernelText *t, Error *err);

#endif
