/* The calls of cuBLAS and cuBLASLt (eval/cuda/library/library.h says what each computes). */
#ifndef EVAL_CUDA_LIBRARY_LIBRARY_CUBLAS_H
#define EVAL_CUDA_LIBRARY_LIBRARY_CUBLAS_H

#include <stdint.h>

#include "base/error.h"

int library_cublas_sgemm(const uint64_t *args, void *stream, Error *err);
int library_cublas_sgemm_batched(const uint64_t *args, void *stream, Error *err);
int library_cublaslt_sgemm_bias_relu(const uint64_t *args, void *stream, Error *err);

/* Load cuBLAS and cuBLASLt. cuDNN needs them, and would find them on the loader's path alone. */
int library_cublas_load(Error *err);

#endif
