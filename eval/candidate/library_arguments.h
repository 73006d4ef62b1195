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

/* The dtype of a call whose factors are float32 and may be rounded to TF32. */
enum { LIBRARY_TF32 = 3 };

/* kinds has one letter for each argument ("pppiii"): p is a pointer, d a double, i a size from 1 to
 * 2^31 - 1, z a size that may be 0, b an integer that is 0 or 1. */
typedef struct {
    const char *name, *kinds;
    int dtype; /* the argument that is the dtype of the factors; 0: there is none */
} LibrarySignature;

/* Makes the dtype argument of a call of float32 factors LIBRARY_TF32 where the libraries of `tf32` may
 * round (base/precision.h). */
void library_let_tf32(const LibrarySignature *s, unsigned tf32, uint64_t *dtype);

/* The signature of a call; NULL when there is no such call. */
const LibrarySignature *library_signature(const char *name);

#endif
