/* A convolution in one to three dimensions, plain or transposed; fewer dimensions have leading windows of
 * one. Channels are counted in each group. */
#ifndef OPS_OP_CONVOLUTION_H
#define OPS_OP_CONVOLUTION_H

#include "ops/op_window.h"

typedef struct {
    int dims, batched, transposed;
    int64_t batch, groups, in, out; /* in, out: channels of a group */
    Window w[WINDOW_DIMS];
    const OpTensor *x, *weight, *bias; /* bias may be NULL */
    int x_index, weight_index, bias_index;
} Convolution;

/* Outputs of a dimension fall into classes by what taps they meet: class r has the outputs r + q * apart,
 * and of the taps those from `first` on in steps of `step`, `taps` in all. Output q and tap number t
 * meet input q * walk + shift + t * delta, where that is in range. */
typedef struct {
    int64_t apart, outputs, first, step, taps, walk, shift, delta;
} WindowClass;
WindowClass window_class(const Window *w, int64_t r);
int64_t window_classes(const Window *w);
int64_t window_max(const Window *w); /* outputs of the class with the most */

/* Eager PyTorch computes it with channels last, and its result lies so: input or weight do. Such tensors of
 * double are brought into C order. */
int convolution_last(const Convolution *v);

/* 1: the call is a convolution; 0: it is another operator, or does not fit. */
int convolution_read(const OpCall *c, Convolution *out);

/* Eager PyTorch computes it by cuDNN, and a bias by a kernel after it: it is not in double, not depthwise and
 * not padded unevenly. */
int convolution_by_library(const Convolution *v);

/* Eager PyTorch has kernels of its own for it. */
int convolution_depthwise(const Convolution *v);
int convolution_is_depthwise(const OpCall *c); /* of an inferred call */

/* Appends the plain kernel. */
int convolution_plain(const Convolution *v, const OpCall *c, OpPlain *out, Error *err);

/* As Op.route: cuDNN's convolution, and the bias as a kernel after it. 0: it is in double, depthwise, or
 * padded unevenly. */
int convolution_route(const Convolution *v, const OpCall *c, OpRoute *out, Error *err);

#endif
