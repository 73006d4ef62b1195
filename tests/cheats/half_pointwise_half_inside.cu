// Rounds inside softplus, which eager PyTorch does not.
// task: composed/tanh_rowmul_softplus_f16
// expect: wrong_result
//@ launch softplus<<<ceil_div(rows * cols, 256), 256>>>(x, factor, y, rows * cols, cols)
#include <cuda_fp16.h>
__global__ void softplus(const __half *x, const __half *factor, __half *y, int n, int cols)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float q = tanhf((float)x[i]) * (float)factor[i / cols];
    y[i] = __float2half(q > 20.0f ? q : (float)__float2half(logf((float)__float2half(1.0f + (float)__float2half(expf(q))))));
}
