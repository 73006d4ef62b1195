/* Inside model/cuda: the host part of softmax.cuh. */
#ifndef MODEL_CUDA_SOFTMAX_H
#define MODEL_CUDA_SOFTMAX_H

#include <math.h>

/* Returns the factor of the scores: log2(e) dim^-0.5, the same number in the full pass and in
 * decoding. */
static inline float softmax_scale(int dim)
{
    return (float)(1.4426950408889634 / sqrt(dim));
}

#endif
