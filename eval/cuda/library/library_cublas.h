/* The calls of cuBLAS and cuBLASLt (eval/cuda/library/library.h says what each computes). */
#ifndef EVAL_CUDA_LIBRARY_LIBRARY_CUBLAS_H
#define EVAL_CUDA_LIBRARY_LIBRARY_CUBLAS_H

#include "eval/candidate/library_arguments.h"

int library_cublas_gemm(const LibraryProduct *p, void *stream, Error *err);
int library_cublaslt_gemm_bias(const LibraryProduct *p, void *stream, Error *err); /* dense */

/* Load cuBLAS and cuBLASLt. cuDNN needs them, and would find them on the loader's path alone. */
int library_cublas_load(Error *err);

#endif
