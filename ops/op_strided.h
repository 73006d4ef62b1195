/* Operators that give one strided view of their first tensor, or a contiguous copy of one. The detail
 * of such an operator is a StridedView. */
#ifndef OPS_OP_STRIDED_H
#define OPS_OP_STRIDED_H

#include "ops/op.h"

typedef enum {
    STRIDED_VIEW, /* the result is the view */
    STRIDED_COPY, /* the result is a copy */
    STRIDED_MAYBE /* the shape function decides by its return value */
} StridedKind;

typedef struct {
    StridedKind kind;
    /* Turns *y, which is the tensor x, into the view. 0: done; -1: *err; 1 (STRIDED_MAYBE): strides
     * cannot tell; the result is a copy of x in C order, with y's shape and dtype. */
    int (*shape)(const OpCall *c, OpTensor *y, Error *err);
} StridedView;

int strided_infer(OpCall *c, Error *err);
/* Of any call whose results are views of inputs, also of several. */
int strided_reference(const OpCall *c, const double *const *in, double *const *out, Error *err);
int strided_plain(const OpCall *c, OpPlain *out, Error *err);

/* The strides of x's elements in C order under another shape: 1 when there are none. size may not
 * hold -1. */
int strided_reshape(const OpTensor *x, int rank, const int64_t *size, OpTensor *y);
/* Sets y's size[] from a list that may hold one -1. */
int strided_sizes(const OpTensor *x, const OpValue *list, int64_t *size, Error *err);

#endif
