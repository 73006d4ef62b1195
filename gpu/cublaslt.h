/* cuBLASLt, opened at run time: products of bf16 matrices with fp32 sums. Which algorithm a shape
 * gets is the library's heuristic's first that runs, chosen once a shape and never by timing: the
 * same shapes give the same bits. Algorithms that add parts of a sum in less than fp32 are not
 * taken.
 *
 * On Hopper every algorithm with a tile that does not split k sums an element as one chain of 16
 * products at a time, k ascending, as mma.m16n8k16 and wgmma do: the same bits whatever the tile
 * and the other rows (docs/model.md). So they do where every row of a, b and d begins at a multiple
 * of 16 bytes; for others (n = 33) it has kernels that sum otherwise. */
#ifndef GPU_CUBLASLT_H
#define GPU_CUBLASLT_H

#include <stddef.h>

#include "base/error.h"
#include "gpu/driver.h"

enum { CUBLASLT_WORKSPACE = 32 << 20 };

/* d = alpha op(a) op(b) + beta c, all row-major: op(a) is [m,k], op(b) [k,n], c and d [m,n]. ta: a
 * is stored [k,m]; tb: b is stored [n,k]. lda, ldb, ldd: numbers from one stored row to the next; c
 * has d's. Device addresses of any alignment. */
typedef struct {
    int ta, tb, m, n, k;
    const void *a, *b;
    int lda, ldb;
    float alpha, beta;
    const void *c; /* may be d; not read when beta is 0 */
    void *d;
    int ldd;
    int wide;    /* c and d are fp32, else bf16 */
    int ordered; /* by such a chain where there is one */
} CublasltProduct;

typedef struct Cublaslt Cublaslt;

/* In the current context, a primary one. Closing it forgets the shapes; the library stays open. */
int cublaslt_open(Cublaslt **out, Error *err);
void cublaslt_close(Cublaslt *c);

/* Put into the stream; workspace: CUBLASLT_WORKSPACE bytes on the device, aligned to 256, that
 * nothing else in flight uses. An error names the shape and what the library said; nothing was put
 * into the stream then. An empty d is no work; with k = 0 the library decides. */
int cublaslt_product(Cublaslt *c, const CublasltProduct *p, void *workspace, CuStream stream,
                     Error *err);

#endif
