// Adds the exponentials in float16.
// task: composed/hswish_res_softmax_f16
// expect: wrong_result
//@ launch soft<<<ceil_div(rows, 4), 128>>>(x, res, y, rows, cols)
#include <cuda_fp16.h>
__device__ float value(const __half *x, const __half *res, long long i)
{
    float a = (float)x[i];
    return a * fminf(fmaxf(a + 3.0f, 0.0f), 6.0f) / 6.0f + (float)res[i];
}
__global__ void soft(const __half *x, const __half *res, __half *y, int rows, int cols)
{
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    long long at = (long long)row * cols;
    float m = -INFINITY;
    for (int c = lane; c < cols; c += 32) m = fmaxf(m, value(x, res, at + c));
    for (int d = 16; d; d /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
    __half s = __float2half(0.0f);
    for (int c = lane; c < cols; c += 32) s = __hadd(s, __float2half(expf(value(x, res, at + c) - m)));
    for (int d = 16; d; d /= 2) s = __hadd(s, __shfl_xor_sync(~0u, s, d));
    for (int c = lane; c < cols; c += 32) y[at + c] = __float2half(expf(value(x, res, at + c) - m) / (float)s);
}
