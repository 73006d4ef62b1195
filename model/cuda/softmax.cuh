/* The weights of attention, in arithmetic that the full pass and decoding share bit for bit,
 * although they divide the keys differently. A weight is 2^(score scale - top), where `top` is an
 * integer of the row that is not below any score. The choice of top does not change the result: the
 * score is first rounded to a multiple of 2^-14, so that another top multiplies the weight, its
 * rounding to bf16 and all their sums by an exact power of two. */
#ifndef MODEL_CUDA_SOFTMAX_CUH
#define MODEL_CUDA_SOFTMAX_CUH

#include "engine.cuh"

/* A sum with it, in [512, 1024), is a multiple of 2^-14. */
constexpr float MAGIC = 1.5f * (1 << 9);

/* The weight of a score; lift is MAGIC - top. 2^x has the same bits for x and x + n only where
 * neither is positive. */
__device__ __forceinline__ float weight(float score, float scale, float lift)
{
    return exp2_fast(fmaf(score, scale, lift) - MAGIC);
}

/* The sum of a thread's weights of 16 keys: keys 2t, 2t + 1, 2t + 8 and 2t + 9 of thread t of four.
 * Each thread adds the row's groups of 16 from the first key on, and the row's sum is warp_sum(..,
 * 4) of the four. */
__device__ __forceinline__ float weights_sum(float a, float b, float c, float d)
{
    return (a + b) + (c + d);
}

#endif
