/* The operator library: one entry an ATen operator, found by the name that torch.export gives it
 * ("aten.add.Tensor"). An OpCall is an operator with its arguments bound by the schema. op_infer
 * checks them and gives the results' shapes, strides and dtypes; nothing else may run before it.
 * References take and give the logical elements of each tensor as doubles in C order, whatever the
 * strides are. A result that is no view is contiguous until op_layout. Ranks are at most 8, and no
 * tensor has 2^48 elements or more. */
#ifndef OPS_OP_H
#define OPS_OP_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/precision.h"

enum {
    OP_MAX_RANK = 8,
    OP_MAX_ARGS = 16,
    OP_MAX_TENSORS = 64,
    OP_MAX_RESULTS = 32,
    OP_MAX_LIST = 64,
    OP_MAX_LAUNCHES = 4096,
    OP_MAX_SCRATCH = 24,
    OP_MAX_CALLS = 4
};

typedef struct {
    Dtype dtype;
    int rank;
    int64_t size[OP_MAX_RANK], stride[OP_MAX_RANK]; /* in elements */
    int64_t offset;                                 /* of a view, in elements of its base */
} OpTensor;

typedef enum {
    OP_NONE,
    OP_TENSOR,
    OP_TENSORS,
    OP_INT,
    OP_FLOAT,
    OP_BOOL,
    OP_INTS,
    OP_DTYPE,
    OP_STRING
} OpKind;

/* One argument. integer[] holds an int, a bool, a dtype, the ints of a list, or the indices of
 * tensors in OpCall.tensor. */
typedef struct {
    OpKind kind;
    int n;
    int64_t integer[OP_MAX_LIST];
    double number; /* of an int or float */
    char text[64]; /* of a string */
} OpValue;

typedef struct Op Op;
typedef struct OpElements OpElements; /* op_element.h */

typedef struct {
    const Op *op;
    int n_tensors, n_args, n_results;
    OpTensor tensor[OP_MAX_TENSORS]; /* inputs, in the order in which arguments name them */
    OpValue arg[OP_MAX_ARGS];        /* by position in the schema; defaults filled in */
    OpTensor result[OP_MAX_RESULTS];
    int view_of[OP_MAX_RESULTS]; /* the input whose memory a result is; -1: memory of its own */
} OpCall;

typedef struct {
    char kernel[48];
    int64_t grid[3];
    int block[3], shared;
    char arguments[512]; /* "x0, x1, t0, y0, 64": inputs, scratch and results by index; numbers */
    int64_t repeat; /* 0: once; else for t in 0..repeat, and the last argument is "t", an int */
} OpLaunch;

/* CUDA C++ of the kernels that eager PyTorch launches, and their launches in order. A pointer x0 or y0
 * is to the memory of which the tensor is a view: kernels add its offset. Several calls may append to
 * one OpPlain; scratch[] is of the last one. The caller clears it, and frees `launch`. */
typedef struct {
    const OpCall *call; /* whose kernels are written */
    Buffer *source;
    int n;
    OpLaunch *launch;
    int n_scratch;
    struct {
        Dtype dtype;
        int64_t elements;
    } scratch[OP_MAX_SCRATCH]; /* t0, t1, ...: memory from one launch of the call to the next */
} OpPlain;

/* A call of a vendor library as a plan has it: a name of eval/candidate/library_arguments.c and its
 * arguments, "x0, x1 + 64, y0, 128, 64, 32". It follows the first `after` launches of the kernels. */
typedef struct {
    const char *library;
    char arguments[320];
    int after;
} OpLibraryCall;

/* The calls with which eager PyTorch computes an operator, in order, and kernels between them. */
typedef struct {
    int n;
    OpLibraryCall call[OP_MAX_CALLS];
    OpPlain *kernels; /* the caller's */
} OpRoute;

typedef struct {
    double bytes, flops; /* the least that any kernel moves and computes */
    int flops_alone;     /* bytes are not asked for */
} OpCost;

/* OP_VIEW: results may be an input's memory under another shape; OpCall.view_of says whether they are.
 * OP_IN_PLACE: the result is argument 0's memory with new contents. OP_CONSTANT: the results' values
 * follow from shapes alone. OP_CUBLAS, OP_CUDNN: eager PyTorch computes it by this library. */
enum { OP_VIEW = 1, OP_IN_PLACE = 2, OP_CONSTANT = 4, OP_CUBLAS = 8, OP_CUDNN = 16 };

struct Op {
    const char *name, *schema; /* "Tensor self, int dim=-1, *, ScalarType? dtype=None" */
    int (*infer)(OpCall *c, Error *err);
    int (*reference)(const OpCall *c, const double *const *in, double *const *out, Error *err);
    int (*plain)(const OpCall *c, OpPlain *out, Error *err); /* NULL: none is known */
    void (*cost)(const OpCall *c, OpCost *out);              /* NULL: inputs and results once */
    unsigned flags;
    const void *detail; /* of the family */
    /* 1: *out is filled; 0: no library call that is known computes this call; -1: *err. Optional. */
    int (*route)(const OpCall *c, OpRoute *out, Error *err);
    const OpElements *elements; /* NULL: results are computed whole */
    void (*layout)(OpCall *c);  /* NULL: results stay in C order */
};

/* A family's table. Its fixtures are tests/fixtures/ops/NAME.json. */
typedef struct {
    const char *name;
    const Op *ops;
    int n;
} OpFamily;
OpFamily op_family(int i); /* n 0: past the last one */
extern const OpFamily pointwise_family, math_family, compare_family, matmul_family,
    convolution_family, view_family, layout_family, reduction_family, pooling_family,
    attention_family, recurrent_family, embedding_family, norm_family, softmax_family, scan_family,
    fft_family, loss_family, indexing_family, composed_family, sort_family, scatter_family,
    resize_family, columns_family, grid_family, extreme_family, search_family, select_family;

const Op *op_find(const char *name, Error *err); /* UNKNOWN_NAME says which name comes near */
const Op *op_at(int i);

/* Binds arguments. keyword[i] NULL: positional. Fills c whole; tensors must be set with
 * op_call_tensor first, so that values can name them. */
void op_call_init(OpCall *c, const Op *op);
int op_call_tensor(OpCall *c, const OpTensor *t, Error *err); /* its index, or -1 */
int op_bind(OpCall *c, const char *const *keyword, const OpValue *values, int n, Error *err);
int op_infer(OpCall *c, Error *err);
/* Gives the results of an inferred call the strides that eager PyTorch gives them on a GPU: a convolution of
 * a tensor whose channels lie last has such a result. */
void op_layout(OpCall *c);
int op_cost(const OpCall *c, OpCost *out, Error *err);
int op_flops(const OpCall *c, double *out, Error *err); /* in little time, whatever the sizes */
/* Appends the plain kernels of an inferred call: none where all results are views. The source
 * needs cuda_bf16.h and cuda_fp16.h. UNSUPPORTED: no plain kernel is known. */
int op_plain(const OpCall *c, OpPlain *out, Error *err);
/* The library's route of an inferred call: 1, 0 or -1 as Op.route. out->kernels is set by the caller. */
int op_route(const OpCall *c, OpRoute *out, Error *err);
/* Which library may round factors of an inferred call to TF32 where a precision lets it: TF32_CUBLAS,
 * TF32_CUDNN, or 0: factors are not float32, or none of them computes it (a vector, a depthwise
 * convolution). */
unsigned op_tf32(const OpCall *c);
int op_factors(const OpCall *c); /* the index of the first of its two tensors that are multiplied */
int op_is_view(const OpCall *c); /* result 0 is the memory of an input, unchanged */

/* The position of a named argument in the schema; -1: none. */
int op_argument(const Op *op, const char *name);
int op_is_of(const Op *op, const OpFamily *f);
/* Matrix products and convolutions, whose results are sums of products of two tensors. */
int op_is_product(const Op *op);

/* Helpers of families. */
int64_t op_elements(const OpTensor *t);
void op_contiguous(OpTensor *t); /* C order strides, offset 0 */
int op_result(OpCall *c, Dtype dtype, int rank, const int64_t *size, Error *err);
/* A result that is the memory of an input, with t's shape, strides and offset. */
int op_view(OpCall *c, int input, const OpTensor *t, Error *err);
const OpTensor *op_tensor(const OpCall *c, int arg); /* NULL: not a tensor */
int op_is_contiguous(const OpTensor *t);
double op_bytes(const OpTensor *t); /* of its distinct elements */
/* A cost of one flop for each element of the first argument. */
void op_cost_elements(const OpCall *c, OpCost *out);
int op_dim(int64_t dim, int rank, int *out, Error *err);
/* The rows of x along a dimension: n elements each, one in every `inner`. */
int op_rows(const OpTensor *x, int64_t dim, int64_t *rows, int64_t *n, int64_t *inner, Error *err);
int op_broadcast(const OpTensor *const *t, int n, int64_t *size, int *rank, Error *err);
Dtype op_promote(const OpCall *c, const int *args, int n);   /* torch.result_type */
Dtype op_promote_list(const OpCall *c, const OpValue *list); /* of a list of tensors */

#endif
