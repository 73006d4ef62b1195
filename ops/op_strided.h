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
extern const OpElements strided_elements; /* of result 0 */

/* The strides of x's elements in C order under another shape: 1 when there are none. size may not
 * hold -1. */
int strided_reshape(const OpTensor *x, int rank, const int64_t *size, OpTensor *y);
/* Sets y's size[] from a list that may hold one -1. */
int strided_sizes(const OpTensor *x, const OpValue *list, int64_t *size, Error *err);

/* The elements of a shape in C order, and where each lies in up to WALK_OPERANDS arrays: rows of evenly
 * spaced elements, so that a loop over them divides once a run of elements. */
enum { WALK_OPERANDS = 3, WALK_RUN = 4096 };

typedef struct {
    int rank, n;                              /* n: operands */
    int64_t size[OP_MAX_RANK];                /* dimensions that no operand allows to merge */
    int64_t step[OP_MAX_RANK][WALK_OPERANDS]; /* from one element to the next, by dimension */
    int64_t runs, pieces;                     /* of at most WALK_RUN elements; of each row */
} OpWalk;

typedef struct {
    int64_t first, n;          /* in C order */
    int64_t at[WALK_OPERANDS]; /* of the first element */
    const int64_t *step;       /* from one element of the run to the next */
} OpRun;

/* step[i][d]: of operand i along dimension d. */
void walk_open(OpWalk *w, int rank, const int64_t *size, const int64_t (*step)[OP_MAX_RANK], int n);
OpRun walk_run(const OpWalk *w, int64_t i); /* 0 to runs - 1 */
/* Where element i lies in each operand. */
void walk_place(const OpWalk *w, int64_t i, int64_t at[WALK_OPERANDS]);

/* Copies t's elements from its memory, offset included, to C order. */
void walk_gather(const OpTensor *t, const double *memory, double *to);
/* The same back, one element after the other: of elements that share a place the last one stays. */
void walk_scatter(const OpTensor *t, const double *from, double *memory);

#endif
