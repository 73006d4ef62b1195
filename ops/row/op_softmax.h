/* Softmax and its logarithm over one dimension: what the reference and the kernels share. Element i of
 * row r is the flat index (r / inner * n + i) * inner + r % inner. */
#ifndef OPS_ROW_OP_SOFTMAX_H
#define OPS_ROW_OP_SOFTMAX_H

#include "ops/op.h"

typedef struct {
    int logarithm;
    int64_t rows, n, inner;
} Softmax;

int softmax_of(const OpCall *c, Softmax *s, Error *err);
int softmax_plain(const OpCall *c, OpPlain *out, Error *err);

#endif
