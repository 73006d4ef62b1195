// One pass with a running maximum, and approximate exponentials.
// task: composed/hswish_res_softmax_f16
// expect: ok
//@ launch soft<<<ceil_div(rows, 4), 128>>>(x, res, y, rows, cols)
#include <cuda_fp16.h>
__device__ float value(const __half *x, const __half *res, long long i)
{
    float a = (float)x[i];
    return a * __saturatef(a / 6.0f + 0.5f) + (float)res[i];
}
__global__ void soft(const __half *x, const __half *res, __half *y, int rows, int cols)
{
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    long long at = (long long)row * cols;
    float m = -INFINITY, s = 0;
    for (int c = lane; c < cols; c += 32) {
        float v = value(x, res, at + c), to = fmaxf(m, v);
        s = s * __expf(m - to) + __expf(v - to);
        m = to;
    }
    for (int d = 16; d; d /= 2) {
        float other = __shfl_xor_sync(~0u, m, d), sum = __shfl_xor_sync(~0u, s, d), to = fmaxf(m, other);
        s = (m == -INFINITY ? 0 : s * __expf(m - to)) + (other == -INFINITY ? 0 : sum * __expf(other - to));
        m = to;
    }
    float r = 1.0f / s;
    for (int c = lane; c < cols; c += 32) y[at + c] = __float2half(__expf(value(x, res, at + c) - m) * r);
}
