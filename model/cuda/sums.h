/* Inside model/cuda: the second stage of a sum over rows. */
#ifndef MODEL_CUDA_SUMS_H
#define MODEL_CUDA_SUMS_H

/* to[n] += the sum of the rows of parts[count][n], in a fixed tree order. */
void cuda_sum_parts(float *to, const float *parts, unsigned count, int n);

#endif
