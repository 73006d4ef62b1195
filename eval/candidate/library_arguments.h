/* The arguments of library calls (eval/cuda/library/library.h) as products and convolutions. */
#ifndef EVAL_CANDIDATE_LIBRARY_ARGUMENTS_H
#define EVAL_CANDIDATE_LIBRARY_ARGUMENTS_H

#include <stdint.h>

#include "base/error.h"

/* c[i] = alpha a[i] b[i] for `batch` products of m x k by k x n, row-major. lda, ldb and ldc are elements
 * between rows as stored; apart_a and so on between matrices. */
typedef struct {
    uint64_t a, b, bias, c; /* bias: 0 for none */
    int dtype, c_dtype;     /* 0 float32, 1 float16, 2 bfloat16 */
    int tf32;               /* factors of float32 may be rounded to TF32 */
    int relu, transpose_a, transpose_b;
    int64_t batch, m, n, k, lda, ldb, ldc, apart_a, apart_b, apart_c;
    double alpha;
} LibraryProduct;

/* Channels are counted over all groups. Fewer than three dimensions have leading ones of 1. */
typedef struct {
    uint64_t x, weight, y;
    int transposed, dtype;
    int64_t tf32; /* as LibraryProduct has it */
    int64_t last; /* x, weight and y lie with channels last: the second dimension varies fastest */
    int64_t batch, in, out, groups;
    struct {
        int64_t in, kernel, out, stride, padding, dilation;
    } d[3];
} LibraryConvolution;

/* 1: the call is a product, or a convolution, with n arguments; 0: it is not; -1: its sizes do not fit. */
int library_product(const char *name, const uint64_t *args, int n, LibraryProduct *out, Error *err);
int library_convolution(const char *name, const uint64_t *args, int n, LibraryConvolution *out,
                        Error *err);

#endif
