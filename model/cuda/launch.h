/* Inside model/cuda: how launchers cut work into blocks, by shape alone. */
#ifndef MODEL_CUDA_LAUNCH_H
#define MODEL_CUDA_LAUNCH_H

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

/* Whether a kernel may read 16 bytes at a time there; NULL may. */
static inline int aligned16(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

/* `vectors` of a row in pieces, a block each, of `each` vectors a thread and 256 threads at most:
 * as even as whole warps allow. */
static inline void cut_row(size_t vectors, unsigned each, unsigned *pieces, unsigned *threads)
{
    *pieces = ceil_div(vectors, (size_t)256 * each);
    *threads = whole_warps(ceil_div(vectors, (size_t)*pieces * each));
}

#endif
