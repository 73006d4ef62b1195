// Exponentials in half precision, sums in single.
// task: softmax
// expect: wrong_result
#include <cuda_fp16.h>
//@ launch softmax<<<rows, 32>>>(x, y, cols)
extern "C" __global__ void softmax(const float *x, float *y, int cols)
{
    const float *r = x + (long long)blockIdx.x * cols; float m = -INFINITY, s = 0;
    for (int c = threadIdx.x; c < cols; c += 32) m = fmaxf(m, r[c]);
    for (int d = 16; d; d /= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, d));
    for (int c = threadIdx.x; c < cols; c += 32) s += __half2float(hexp(__float2half(r[c] - m)));
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    for (int c = threadIdx.x; c < cols; c += 32)
        y[(long long)blockIdx.x * cols + c] = __half2float(hexp(__float2half(r[c] - m))) / s;
}
