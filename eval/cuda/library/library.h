/* Calls of vendor libraries by name, for baselines: `//@ library cublas.sgemm(a, b, c, m, n, k)` in
 * a trusted plan becomes one library_call in the runner of trusted modules. A library is opened at
 * its first use, from $CUDA_HOME/lib64, the loader's path (LD_LIBRARY_PATH names the folders of
 * Python wheels) or /usr/local/cuda/lib64. A build needs none of them.
 *
 * Everything is float32 with float32 arithmetic (no TF32). Matrices are dense and row-major as in a
 * task, and sizes are at least 1. An argument is a pointer, an integer or a double, 8 bytes each:
 *
 *   cublas.sgemm(a, b, c, m, n, k)
 *       c[m,n] = a[m,k] b[k,n], as torch.matmul launches it
 *   cublas.sgemm_batched(a, b, c, batch, m, n, k, transpose_a, transpose_b, alpha)
 *       c[i,m,n] = alpha a[i,m,k] b[i,k,n], as torch.bmm; with transpose_a (1 or 0) a is stored as
 *       [i,k,m], with transpose_b b is stored as [i,n,k]
 *   cublaslt.sgemm_bias_relu(a, b, bias, c, m, n, k)
 *       c[m,n] = max(a b + bias[n], 0) in one kernel
 *   cudnn.conv3d_forward(x, weight, y, batch, cin, cout, depth, height, width, kernel, stride,
 *                        padding)
 *       y = x[batch,cin,depth,height,width] convolved (cross-correlated) with
 *       weight[cout,cin,kernel,kernel,kernel], without a bias, as torch's conv3d before its bias;
 *       the algorithm is the choice of cuDNN's heuristic
 *
 * Descriptors and choices of the heuristics are kept for each shape. Only the first call for a
 * shape allocates or waits, so that later calls can be captured into a graph. One thread and one
 * context: the state belongs to the context that was current at the first call. */
#ifndef EVAL_CUDA_LIBRARY_LIBRARY_H
#define EVAL_CUDA_LIBRARY_LIBRARY_H

#include <stdint.h>

#include "base/error.h"

/* Enqueue the call on `stream` (a CUstream) of the current context. Handles and workspaces are kept
 * until the process ends. */
int library_call(const char *name, const uint64_t *args, int n, void *stream, Error *err);

#endif
