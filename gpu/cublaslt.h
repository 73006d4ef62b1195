/* Products of bf16 matrices with fp32 sums by cuBLASLt, opened at run time. A shape gets the first
 * algorithm of the library's heuristic that runs. It is chosen once for a shape and never by
 * timing, so that equal shapes give equal bits. Algorithms that add partial sums in less than fp32
 * are excluded.
 *
 * On Hopper every algorithm that has a tile and does not split k sums an element in one chain of 16
 * products at a time, in ascending k, as mma.m16n8k16 and wgmma do. The bits then do not depend on
 * the tile or on the other rows (docs/model.md). This holds when every row of a, b and d begins at
 * a multiple of 16 bytes; for other matrices (n = 33) the library has kernels that sum in another
 * order. */
#ifndef GPU_CUBLASLT_H
#define GPU_CUBLASLT_H

#include <stddef.h>

#include "base/error.h"
#include "gpu/driver.h"

enum { CUBLASLT_WORKSPACE = 32 << 20 };

/* d = alpha op(a) op(b) + beta c, all row-major: op(a) is [m,k], op(b) [k,n], c and d [m,n]. ta: a
 * is stored as [k,m]; tb: b is stored as [n,k]. lda, ldb, ldd: elements from one stored row to the
 * next; c has the stride of d. Device addresses of any alignment. */
typedef struct {
    int ta, tb, m, n, k;
    const void *a, *b;
    int lda, ldb;
    float alpha, beta;
    const void *c; /* may be d; not read when beta is 0 */
    void *d;
    int ldd;
    int wide;    /* c and d are fp32, else bf16 */
    int ordered; /* prefer an algorithm that sums in one chain */
} CublasltProduct;

typedef struct Cublaslt Cublaslt;

/* In the current context, which must be a primary one. Closing drops the shapes; the library stays
 * open. */
int cublaslt_open(Cublaslt **out, Error *err);
void cublaslt_close(Cublaslt *c);

/* Enqueue the product in the stream. workspace: CUBLASLT_WORKSPACE bytes on the device, aligned to
 * 256, that no other enqueued work uses. After an error, which names the shape, nothing was
 * enqueued. An empty d is no work; with k = 0 the library decides. */
int cublaslt_product(Cublaslt *c, const CublasltProduct *p, void *workspace, CuStream stream,
                     Error *err);

#endif
