/* Calls of vendor libraries by name, for baselines: `//@ library cublas.sgemm(a, b, c, m, n, k)` in
 * a trusted plan becomes one library_call in the runner of trusted modules. A library is opened at
 * its first use, from $CUDA_HOME/lib64, the loader's path (LD_LIBRARY_PATH names the folders of
 * Python wheels) or /usr/local/cuda/lib64. A build needs none of them.
 *
 * float32 has float32 arithmetic; float16 and bfloat16 are summed in float32. Where there is no dtype
 * argument (0 float32, 1 float16, 2 bfloat16, 3 float32 whose factors may be rounded to TF32), all is
 * float32. Matrices are row-major, and dense but for cublas.gemm; sizes are at least 1. An argument is
 * a pointer, an integer or a double, 8 bytes each:
 *
 *   cublas.gemm(a, b, c, dtype, c_dtype, batch, m, n, k, transpose_a, transpose_b, lda, ldb, ldc,
 *               apart_a, apart_b, apart_c, alpha)
 *       the same as sgemm_batched below; lda and so on are elements from a row to the next as
 *       stored, apart_a and so on from a matrix to the next
 *   cublas.sgemm(a, b, c, m, n, k)
 *       c[m,n] = a[m,k] b[k,n], as torch.matmul launches it
 *   cublas.sgemm_batched(a, b, c, batch, m, n, k, transpose_a, transpose_b, alpha)
 *       c[i,m,n] = alpha a[i,m,k] b[i,k,n], as torch.bmm; with transpose_a (1 or 0) a is stored as
 *       [i,k,m], with transpose_b b is stored as [i,n,k]
 *   cublaslt.gemm_bias(a, b, bias, c, dtype, m, n, k, transpose_b)
 *       c[m,n] = a b + bias[n], as torch's linear and addmm
 *   cublaslt.sgemm_bias_relu(a, b, bias, c, m, n, k)
 *       c[m,n] = max(a b + bias[n], 0) in one kernel
 *   cudnn.conv3d_forward(x, weight, y, batch, cin, cout, depth, height, width, kernel, stride,
 *                        padding)
 *       y = x[batch,cin,depth,height,width] convolved (cross-correlated) with
 *       weight[cout,cin,kernel,kernel,kernel], without a bias, as torch's conv3d before its bias;
 *       the engine is the choice of cuDNN's heuristic
 *   cudnn.convolution(x, weight, y, transposed, dtype, batch, cin, cout, groups, then for each of
 *                     three dimensions: input, kernel, output, stride, padding, dilation)
 *       the same in general. Fewer dimensions have leading ones of 1. transposed: the gradient by
 *       the input, with weight[cin,cout/groups,...], as torch's conv_transpose; its engine may add in
 *       another order each time, as torch's
 *   cudnn.convolution_last(the same arguments)
 *       the same where channels lie last: x[batch,...,cin], weight[cout,...,cin/groups] and
 *       y[batch,...,cout], of a transposed one weight[cin,...,cout/groups]
 *
 * Descriptors and choices of the heuristics are kept for each shape. Only the first call for a
 * shape allocates or waits, so that later calls can be captured into a graph. One thread and one
 * context: the state belongs to the context that was current at the first call. */
#ifndef EVAL_CUDA_LIBRARY_LIBRARY_H
#define EVAL_CUDA_LIBRARY_LIBRARY_H

#include <stdint.h>

#include "base/error.h"

/* Enqueue the call on `stream` (a CUstream) of the current context. Handles and workspaces are kept
 * until the process ends. A call that the library refuses for its sizes is ERROR_INVALID, ERROR_LIMIT or
 * ERROR_UNSUPPORTED; what fails otherwise has another code. */
int library_call(const char *name, const uint64_t *args, int n, void *stream, Error *err);

#endif
