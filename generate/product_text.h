/* Parts of the texts of products' kernels. */
#ifndef GENERATE_PRODUCT_TEXT_H
#define GENERATE_PRODUCT_TEXT_H

#include "generate/product.h"

/* Bits of KernelText.helpers. */
enum {
    HELP_SMALL = 13,
    HELP_CONVOLVE,
    HELP_CONVOLVE_FOLDS,
    HELP_CONVOLVE_STATISTICS,
    HELP_PACK_PLACES,
    HELP_FACTOR,
    HELP_PRODUCT,
    HELP_FEW,
    HELP_DIRECT,
    HELP_HALVES,
    HELP_HALF,
    HELP_HALF_MAPS,
    HELP_STAGES,
    HELP_CONVOLVE_MAPS,
    HELP_CONVOLVE_HALO,
    HELP_DEPTHWISE,
    HELP_CONVOLVE_WINDOWS
};
/* Of KernelText.shared. Those before PART_SUMS have a buffer for each size, the others one of the largest. */
enum {
    LEFT_PARTS,
    LEFT_FACTORS,
    RIGHT_PARTS,
    RIGHT_FACTORS,
    PART_SUMS,
    PACKED_INPUT,
    PACKED_FILTERS /* and TEXT_PACKED - 1 more */
};

/* m: the join's first product. */
typedef struct {
    const ProductJoin *join;
    const MatrixProduct *m;
    Kernel *k;
    KernelText *t;
    Error *err;
    const char *out; /* the result's name */
    Buffer body;
    int number; /* of the kernel's source, which an equal one has, too */
    int packed; /* of a convolution: which of its launch's filters it reads */
    int failed;
} ProductWriter;

/* A line's elements lie in one piece. */
int product_is_along(const MatrixProduct *m, ProductOperand x);
const char *product_size(ProductWriter *w, Size s);
/* " + batch * step", for each group whose index has a name. */
void product_put_place(ProductWriter *w, const ProductTensor *t, const char *const *index);
/* A function `value` of batch, row, column and the sums, which is what the kernel makes of them. */
void product_put_value(ProductWriter *w, const char *rows);
/* A function `result` of the same, the first sum itself. */
void product_put_result(ProductWriter *w);
/* Appends a part of a file to the source, once by its bit. */
void product_help(KernelText *t, int bit, const char *file, const char *part);
/* Puts the barriers of stages in shared memory into the source, once. */
void product_put_stages(KernelText *t);
/* Notes that a shared buffer needs so many elements. */
int product_share(ProductWriter *w, int buffer, const char *size);
const char *product_buffer(int buffer); /* its name */
/* 1: places need 64 bits. */
int product_is_wide(const ProductWriter *w);

/* A function half_multiply, or convolve_multiply where the type is tf32, of n columns: d += a * b, or
 * d = a * b, for 64 lines of a and n of b in shared memory, and 32 bytes of each. */
void product_put_multiply(Buffer *to, const char *type, int n);

/* Begins the launch of a kernel whose blocks make one item after another: as many as there are
 * multiprocessors, or a multiple, so that a block has few items. */
void product_put_launch(ProductWriter *w, const char *items, int threads, int shared);

#endif
