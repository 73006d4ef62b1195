// Rounds each exponential and the reciprocal to float16.
// task: composed/hswish_res_softmax_f16
// expect: wrong_result
//@ launch soft<<<rows, 128>>>(x, res, y, cols)
#include <cuda_fp16.h>
__device__ float all_sum(float s, float *part)
{
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    return part[0] + part[1] + part[2] + part[3];
}
__device__ float value(const __half *x, const __half *res, long long i)
{
    float a = (float)x[i];
    return a * fminf(fmaxf(a + 3.0f, 0.0f), 6.0f) / 6.0f + (float)res[i];
}
__global__ void soft(const __half *x, const __half *res, __half *y, int cols)
{
    __shared__ float part[4], top[4];
    long long at = (long long)blockIdx.x * cols;
    float m = -INFINITY, s = 0;
    for (int c = threadIdx.x; c < cols; c += 128) m = fmaxf(m, value(x, res, at + c));
    for (int d = 16; d; d /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
    if (threadIdx.x % 32 == 0) top[threadIdx.x / 32] = m;
    __syncthreads();
    m = fmaxf(fmaxf(top[0], top[1]), fmaxf(top[2], top[3]));
    for (int c = threadIdx.x; c < cols; c += 128) s += expf(value(x, res, at + c) - m);
    s = all_sum(s, part);
    for (int c = threadIdx.x; c < cols; c += 128) y[at + c] = __float2half((float)__float2half(expf(value(x, res, at + c) - m)) * (float)__float2half(1.0f / s));
}
