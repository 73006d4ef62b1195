/* Reductions: what the reference and the kernels share. The input's dimensions are either kept or
 * reduced; an element is reduced under its flat index in C order of the reduced dimensions. */
#ifndef OPS_OP_REDUCTION_H
#define OPS_OP_REDUCTION_H

#include "ops/op.h"

typedef enum {
    REDUCE_SUM,
    REDUCE_MEAN,
    REDUCE_PROD,
    REDUCE_MAX,
    REDUCE_MIN,
    REDUCE_ARGMAX,
    REDUCE_ARGMIN,
    REDUCE_MAX_AT, /* values, and their indices as a second result */
    REDUCE_MIN_AT,
    REDUCE_NORM,
    REDUCE_VAR,
    REDUCE_STD,
    REDUCE_VAR_MEAN, /* and the mean as a second result */
    REDUCE_STD_MEAN,
    REDUCE_ANY,
    REDUCE_ALL
} ReduceKind;

/* Sizes and the input's steps; `order` is the p of a norm or the correction of a variance. */
typedef struct {
    ReduceKind kind;
    int kept, reduced; /* ranks */
    int64_t kept_size[OP_MAX_RANK], kept_step[OP_MAX_RANK];
    int64_t reduced_size[OP_MAX_RANK], reduced_step[OP_MAX_RANK];
    int64_t outputs, inputs; /* elements of the result; elements that each one reduces */
    unsigned dims;           /* bits of the reduced dimensions */
    double order;
} Reduction;

/* logical: steps are of contiguous elements, else the tensor's strides. */
int reduction_of(const OpCall *c, int logical, Reduction *r, Error *err);
int reduction_is_spread(ReduceKind k); /* a variance or its root, with the mean or alone */
int reduction_plain(const OpCall *c, OpPlain *out, Error *err);

#endif
