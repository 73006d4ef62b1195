/* The elements of a shape in C order, and where each lies in up to WALK_OPERANDS arrays: rows of evenly
 * spaced elements, so that a loop over them divides once a run of elements. */
#ifndef OPS_OP_WALK_H
#define OPS_OP_WALK_H

#include "ops/op.h"

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

/* Copies t's elements from its memory, offset included, to C order. */
void walk_gather(const OpTensor *t, const double *memory, double *to);
/* The same back, one element after the other: of elements that share a place the last one stays. */
void walk_scatter(const OpTensor *t, const double *from, double *memory);

#endif
