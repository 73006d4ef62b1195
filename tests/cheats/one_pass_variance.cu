// The variance as the mean of squares less the square of the mean, in half precision sums.
// task: layernorm
// expect: wrong_result
#include <cuda_fp16.h>
//@ launch layernorm<<<rows, 32>>>(x, gamma, beta, y, cols)
extern "C" __global__ void layernorm(const float *x, const float *gamma, const float *beta, float *y, int cols)
{
    const float *row = x + (long long)blockIdx.x * cols;
    __half2 s = __float2half2_rn(0.0f);
    for (int c = threadIdx.x; c < cols; c += 32) s = __hadd2(s, __floats2half2_rn(row[c], row[c] * row[c]));
    for (int d = 16; d; d /= 2) s = __hadd2(s, __shfl_xor_sync(0xffffffffu, s, d));
    float mean = __low2float(s) / cols, var = __high2float(s) / cols - mean * mean;
    for (int c = threadIdx.x; c < cols; c += 32)
        y[(long long)blockIdx.x * cols + c] = (row[c] - mean) * rsqrtf(var + 1e-5f) * gamma[c] + beta[c];
}
