/* A pool's call, taken apart, and its plain kernels. */
#ifndef OPS_NN_OP_POOL_H
#define OPS_NN_OP_POOL_H

#include "ops/op_window.h"

/* The windows w[0] to w[dims - 1] are of the last dimensions. */
typedef struct {
    int dims, average, adaptive;
    const OpTensor *x;
    int lead; /* dimensions before the windows */
    int64_t planes, volume, outputs;
    Window w[WINDOW_DIMS];
    int include_pad, ceil;
    int64_t divisor; /* 0: the number of elements */
} Pool;

/* Appends the plain kernels. */
int pool_plain(const Pool *p, const OpCall *c, OpPlain *out, Error *err);

#endif
