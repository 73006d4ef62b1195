/* Normalisations: what the reference and the kernels share. The input's elements in C order are rows
 * of n elements with statistics of their own: element i of row r is the flat index
 *
 *   f = i / inner * (rows * inner) + r * inner + i % inner
 *
 * For all but the batch norm inner is n, and a row lies in one piece. Weight and bias of f are at
 * f / spread % channels. */
#ifndef OPS_ROW_OP_NORM_H
#define OPS_ROW_OP_NORM_H

#include "ops/op.h"

typedef enum { NORM_LAYER, NORM_RMS, NORM_GROUP, NORM_INSTANCE, NORM_BATCH } NormKind;

/* What an operator's results are beside the normalised tensor. */
typedef enum {
    NORM_ONE,    /* none */
    NORM_SAVED,  /* mean and 1 / standard deviation of each row */
    NORM_EMPTY,  /* two tensors without elements */
    NORM_UPDATED /* as NORM_SAVED, and the running mean and variance */
} NormResults;

typedef struct {
    NormKind kind;
    NormResults results;
} NormDetail;

typedef struct {
    NormKind kind;
    NormResults results;
    const OpTensor *x, *weight, *bias, *mean, *var;               /* NULL: not given */
    int x_index, weight_index, bias_index, mean_index, var_index; /* in OpCall.tensor */
    int own;           /* statistics are of the input, not the running ones */
    double eps, share; /* share: of the new statistics in the running ones */
    int64_t rows, n, inner, spread, channels;
} Norm;

int norm_of(const OpCall *c, Norm *m, Error *err);
int norm_plain(const OpCall *c, OpPlain *out, Error *err);

#endif
