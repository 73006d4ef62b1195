/* A vendor library call as the time model sees it: an operation and its sizes. */
#ifndef EVAL_SIM_LIBRARY_LIBRARY_SHAPE_H
#define EVAL_SIM_LIBRARY_LIBRARY_SHAPE_H

#include "eval/candidate/library_arguments.h"
#include "eval/device/device.h"

typedef enum {
    LIBRARY_GEMM,
    LIBRARY_CONV,
    LIBRARY_CONV_TRANSPOSED,
    LIBRARY_CONV_LAST, /* with channels last */
    LIBRARY_CONV_TRANSPOSED_LAST,
    LIBRARY_OPS
} LibraryOp;

/* The sizes of each operation, in the order of the tables:
 *   gemm   batch, m, n, k, 1 when b is stored transposed
 *   conv   batch, channels in and out, depth, height, width, kernel (3), stride, padding, groups;
 *          a convolution of fewer dimensions has the leading ones 1 */
enum { LIBRARY_GEMM_SIZES = 5, LIBRARY_CONV_SIZES = 12, LIBRARY_MAX_SIZES = 12 };

typedef struct {
    LibraryOp op;
    int dtype, result; /* Dtypes of tasks/task.h: of the operands, and of what is written */
    int tf32;          /* factors of float32 may be rounded to TF32 */
    double size[LIBRARY_MAX_SIZES];
    /* Of a convolution whose dimensions differ in stride or padding, or are dilated: its outputs. No
     * row of a table has its sizes. 0: they follow from the sizes. */
    double out[3];
} LibraryShape;

/* The product that an operation is, as a library computes it: `groups` products of m x k by k x n.
 * in and out: elements of the first operand and of the result. */
typedef struct {
    double groups, m, n, k, in, weights, out;
    int dims;      /* of a convolution */
    double kernel; /* elements of a convolution's kernel */
    double flops;  /* two for each multiplication and addition */
} LibraryWork;

const char *library_op_name(LibraryOp op); /* "gemm" */
int library_op_sizes(LibraryOp op);        /* how many sizes it has */
int library_op_transposed(LibraryOp op);
int library_op_last(LibraryOp op); /* channels lie last */

/* A call with its arguments. */
typedef struct {
    enum { LIBRARY_PRODUCT, LIBRARY_CONVOLUTION } kind;
    LibraryProduct product;
    LibraryConvolution convolution;
} LibraryCall;

int library_read(const DeviceLaunch *launch, LibraryCall *out, Error *err);

/* The shape of a library call of a plan ("cublas.sgemm"). */
int library_shape(const DeviceLaunch *call, LibraryShape *out, Error *err);
void library_convolution_shape(const LibraryConvolution *c, LibraryShape *out);
LibraryWork library_work(const LibraryShape *s);

#endif
