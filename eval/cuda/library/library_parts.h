/* What the files of eval/cuda/library* share. */
#ifndef EVAL_CUDA_LIBRARY_LIBRARY_PARTS_H
#define EVAL_CUDA_LIBRARY_LIBRARY_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum {
    LIBRARY_GEMM_WORKSPACE =
        32 << 20, /* what PyTorch gives cuBLAS on this generation; the heuristics depend on it */
    LIBRARY_MAX_WORKSPACE = 1 << 30, /* of any call */
    LIBRARY_MAX_SHAPES = 64          /* of one call, kept ready */
};

/* Device memory of at least `bytes`, one for all calls; an address stays until a larger request. */
int library_workspace(size_t bytes, void **p, Error *err);

/* Arguments reach a call checked: pointers are not null, integers fit an int. */
static inline void *library_pointer(uint64_t arg)
{
    return (void *)(uintptr_t)arg;
}

int library_cublas_sgemm(const uint64_t *args, void *stream, Error *err);
int library_cublas_sgemm_batched(const uint64_t *args, void *stream, Error *err);
int library_cublaslt_sgemm_bias_relu(const uint64_t *args, void *stream, Error *err);
int library_cudnn_conv3d_forward(const uint64_t *args, void *stream, Error *err);
/* cuBLAS and cuBLASLt loaded (cuDNN needs them, and would look for them on the loader's path only).
 */
int library_cublas_load(Error *err);

#endif
