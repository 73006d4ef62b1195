/* Inside model/cuda: how launchers divide work into blocks, by shape only. */
#ifndef MODEL_CUDA_LAUNCH_SHAPE_H
#define MODEL_CUDA_LAUNCH_SHAPE_H

#include <stddef.h>
#include <stdint.h>

#include "model/cuda/cuda_state.h"

static inline unsigned ceil_div(size_t a, size_t b)
{
    return (unsigned)((a + b - 1) / b);
}
static inline unsigned whole_warps(unsigned threads)
{
    return (threads + 31) / 32 * 32;
}

/* Returns whether a kernel may access p with 16 bytes at a time. NULL is aligned. */
static inline int aligned16(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

/* Divide the `vectors` of a row into pieces, one block each, of `each` vectors per thread and at
 * most 256 threads: as evenly as whole warps allow. */
static inline void cut_row(size_t vectors, unsigned each, unsigned *pieces, unsigned *threads)
{
    *pieces = ceil_div(vectors, (size_t)256 * each);
    *threads = whole_warps(ceil_div(vectors, (size_t)*pieces * each));
}

#endif
