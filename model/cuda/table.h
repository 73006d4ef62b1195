/* Inside model/cuda: member `foo` of the Ops table is the function cuda_foo, of the same signature,
 * in the file of its topic. The members for decoding on the CPU are NULL. */
#ifndef MODEL_CUDA_TABLE_H
#define MODEL_CUDA_TABLE_H

#include <stddef.h>

#include "model/core/ops.h"

/* clang-format off */
#define CUDA_OPS(X)                                                                 \
    X(alloc) X(release) X(copy) X(zero) X(upload) X(download) X(load) X(store)      \
    X(status) X(memory) X(gemm) X(bias_grad) X(add) X(rmsnorm) X(rmsnorm_grad)      \
    X(head_norm) X(head_norm_grad) X(rope) X(attention) X(attention_grad) X(swiglu) \
    X(swiglu_grad) X(embed) X(embed_grad) X(cross_entropy) X(cross_entropy_grad)    \
    X(sum_squares) X(adamw)
/* clang-format on */

#define X(member) __typeof__(*((Ops *)NULL)->member) cuda_##member;
CUDA_OPS(X)
#undef X

#endif
