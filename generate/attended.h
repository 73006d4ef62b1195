/* Attention as one kernel: the product of queries and keys, what follows it elementwise, a softmax or none,
 * and the product with the values, without scores in memory. It is read from an op line of scaled dot product
 * attention, or from two products and what lies between them. */
#ifndef GENERATE_ATTENDED_H
#define GENERATE_ATTENDED_H

#include "generate/kernel.h"

enum { ATTENTION_DIMS = 4, ATTENTION_TILE = 64, ATTENTION_HEAD = 256 };
typedef enum { ATTENDS_QUERIES, ATTENDS_KEYS, ATTENDS_VALUES, ATTENDS } AttendedSide;

/* One factor: entry of the batch by up to ATTENTION_DIMS dimensions, the last one varying fastest; lines are
 * `apart`, the elements of a line `along`. In elements of the node's memory, which is in C order. */
typedef struct {
    int node, rank;
    Size offset, size[ATTENTION_DIMS], step[ATTENTION_DIMS], apart, along;
} AttendedTensor;

/* The result, of the kept node `of`, is in C order: batch, rows, width. */
typedef struct {
    int of, line;
    int given;  /* the kept node with the sums of queries times keys; -1: it has none yet */
    int scores; /* the node of what a softmax is taken of, or of the weights */
    int is_soft;
    int zeros;  /* a row that is masked whole gives zeros; else NaN */
    int causal; /* no row sees the columns behind its own number + diagonal */
    int64_t diagonal;
    double alpha, beta; /* factors of the scores, and of the results */
    int by_depth;       /* the scores' one is the root of 1 / depth instead */
    AttendedTensor side[ATTENDS];
    Size batch, rows, keys, depth, width;
} Attended;

/* What a kernel is built with. */
typedef struct {
    int groups, stages;
} AttendedShape;

/* 1: a kept node is an attention that a kernel can compute, and no one else needs its scores. */
int attention_read(const Nodes *n, int node, Attended *out);
/* 1: the schedule has a kernel for it; by default where that is faster, by the timed sizes. */
int attention_choose(const Nodes *n, const Attended *a);
AttendedShape attention_shape(const Nodes *n, const Attended *a);
/* The nodes of the scores of an op line's attention. */
void attention_scores(Nodes *n, Attended *a);
/* Microseconds of the kernels, and of the op lines in their place, by the timed sizes. */
double attention_us(const Attended *a, Dtype dtype, double *library);
int attention_parts(Dtype dtype); /* halves of an element */

/* 1: the scores behind a row's own number + *diagonal are -INFINITY, or weights without a softmax zeros. */
int attention_is_causal(const Nodes *n, const Attended *a, int64_t *diagonal);

/* The step of a traced kernel that is the scores' products; -1: they are needed in another order. */
int attention_step(const Attended *a, const Kernel *k);
/* Appends the kernels. k: of the scores; its tensors and those of the sides lie in memory. */
int attention_write(const Attended *a, Kernel *k, int step, KernelText *t, Error *err);

#endif
