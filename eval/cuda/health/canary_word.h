/* The word at index i of the canary, computed by the same text on the host and on the GPU: integers, and
 * floats below 2^24, which are exact. */
#ifndef EVAL_CUDA_HEALTH_CANARY_WORD_H
#define EVAL_CUDA_HEALTH_CANARY_WORD_H

#define CANARY_WORD(result, i)                                                                    \
    unsigned result = (i)*0x9e3779b1u;                                                            \
    result ^= result >> 15;                                                                       \
    result *= 0x85ebca77u;                                                                        \
    float f_##result = (float)(result & 4095u);                                                   \
    for (int k_##result = 0; k_##result < 7; k_##result++) f_##result = f_##result * 3.0f + 1.0f; \
    result ^= (unsigned)f_##result;

#endif
