/* Inside model/cuda: the host's part of softmax.cuh. */
#ifndef MODEL_CUDA_SOFTMAX_H
#define MODEL_CUDA_SOFTMAX_H

#include <math.h>

/* What scores are multiplied by: log2(e) dim^-0.5, the same number for the full pass and for
 * decoding. */
static inline float softmax_scale(int dim)
{
    return (float)(1.4426950408889634 / sqrt(dim));
}

#endif
