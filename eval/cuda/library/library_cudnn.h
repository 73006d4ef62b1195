/* The calls of cuDNN (eval/cuda/library/library.h says what each computes). */
#ifndef EVAL_CUDA_LIBRARY_LIBRARY_CUDNN_H
#define EVAL_CUDA_LIBRARY_LIBRARY_CUDNN_H

#include "eval/candidate/library_arguments.h"

int library_cudnn_convolution(const LibraryConvolution *c, void *stream, Error *err);

#endif
