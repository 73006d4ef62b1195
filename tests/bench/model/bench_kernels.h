/* How fast a table's operations that are bound by memory run at the shapes of a model. */
#ifndef TESTS_BENCH_MODEL_BENCH_KERNELS_H
#define TESTS_BENCH_MODEL_BENCH_KERNELS_H

#include "model/core/ops.h"

/* Rows of a pass, and of one chunk of the loss. */
typedef struct {
    int hidden, ff, vocab, rows, loss_rows;
    HeadShape heads;
} KernelShape;

typedef struct {
    const char *name;
    double bytes;   /* read and written, each once, by one call */
    double seconds; /* of one call: the best of five rounds */
} KernelTime;

enum { KERNEL_TIMES_MAX = 24 };

/* Calls follow one another over as many copies of their arrays as do not fit in a cache. The number
 * of entries of out; -1: the device failed. */
int bench_kernels(const Ops *op, const KernelShape *s, KernelTime out[KERNEL_TIMES_MAX],
                  Error *err);

#endif
