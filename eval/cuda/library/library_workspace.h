/* The device memory that library calls share, and the limits of the calls. */
#ifndef EVAL_CUDA_LIBRARY_LIBRARY_WORKSPACE_H
#define EVAL_CUDA_LIBRARY_LIBRARY_WORKSPACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "gpu/driver.h"

/* Of any call. Eager PyTorch gives cuDNN what an engine asks for: those that transform the input and the
 * output ask for several times their size. */
#define LIBRARY_MAX_WORKSPACE ((size_t)16 << 30)

enum {
    /* PyTorch's choices for cuBLAS here and for cuBLASLt anywhere; the heuristics depend on them: a
     * linear of 8 x 256 by 128 takes 6.6 us by the algorithm for 1 MiB, 56 us by that for 32 MiB (an
     * H200, 2026-11-30). */
    LIBRARY_GEMM_WORKSPACE = 32 << 20,
    LIBRARY_LT_WORKSPACE = 1 << 20,
    /* Kept ready for one call each. The convolutions of DenseNet-201 have 200 shapes, those of a candidate
     * beside them as many. A cache of 64 plans missed at each call, 0.4 ms each (2026-11-30). */
    LIBRARY_MAX_SHAPES = 1024
};

/* Device memory of at least `bytes`, shared by all calls. Its address changes only when a larger
 * size is asked for. */
int library_workspace(size_t bytes, void **p, Error *err);

/* Overwrite it with zeros, where there is one. Does not wait. */
CuResult library_workspace_reset(CuStream stream);

/* The i-th of n kept plans to be compared with a call: sequences of calls repeat, so that the first one
 * follows the plan of the last call. */
static inline int library_kept(int last, int i, int n)
{
    return (last + 1 + i) % n;
}

/* A pointer argument. library_call has checked it: it is not null. */
static inline void *library_pointer(uint64_t arg)
{
    return (void *)(uintptr_t)arg;
}

#endif
