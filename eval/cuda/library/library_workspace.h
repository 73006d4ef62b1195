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
    LIBRARY_GEMM_WORKSPACE = 32 << 20, /* PyTorch's choice here; the heuristics depend on it */
    LIBRARY_MAX_SHAPES = 64            /* kept ready for one call */
};

/* Device memory of at least `bytes`, shared by all calls. Its address changes only when a larger
 * size is asked for. */
int library_workspace(size_t bytes, void **p, Error *err);

/* Overwrite it with zeros, where there is one. Does not wait. */
CuResult library_workspace_reset(CuStream stream);

/* A pointer argument. library_call has checked it: it is not null. */
static inline void *library_pointer(uint64_t arg)
{
    return (void *)(uintptr_t)arg;
}

#endif
