/* Speed of a table's memory-bound operations, at the shapes of a model. */
#ifndef TESTS_BENCH_MODEL_BENCH_KERNELS_H
#define TESTS_BENCH_MODEL_BENCH_KERNELS_H

#include "model/core/ops.h"

typedef struct {
    int hidden, ff, vocab;
    int rows, loss_rows; /* of a pass, and of one chunk of the loss */
    HeadShape heads;
} KernelShape;

typedef struct {
    const char *name;
    double bytes;   /* read and written by one call */
    double seconds; /* of one call, the best of five rounds */
} KernelTime;

enum { KERNEL_TIMES_MAX = 24 };

/* Time the operations. Consecutive calls use different copies of their arrays, more than a cache
 * holds. Returns the number of entries of out, or -1 when the device failed. */
int bench_kernels(const Ops *op, const KernelShape *s, KernelTime out[KERNEL_TIMES_MAX],
                  Error *err);

#endif
