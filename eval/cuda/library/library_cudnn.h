/* The calls of cuDNN (eval/cuda/library/library.h says what each computes). */
#ifndef EVAL_CUDA_LIBRARY_LIBRARY_CUDNN_H
#define EVAL_CUDA_LIBRARY_LIBRARY_CUDNN_H

#include <stdint.h>

#include "base/error.h"

int library_cudnn_conv3d_forward(const uint64_t *args, void *stream, Error *err);

#endif
