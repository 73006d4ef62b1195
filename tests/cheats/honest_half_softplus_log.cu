// log(1 + exp(x)), as many write it: where the result is small it has the error of a number near 1.
// task: composed/clamp_gate_softplus_bias_f16
// expect: ok
//@ launch soft<<<ceil_div(rows * cols, 256), 256>>>(x, gate, bias, y, rows * cols, cols)
#include <cuda_fp16.h>
__global__ void soft(const __half *x, const __half *gate, const __half *bias, __half *y, int n, int cols)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float h = fminf(fmaxf((float)x[i], -1.5f), 1.5f) * (float)gate[i];
    y[i] = __float2half((h > 20.0f ? h : logf(1.0f + expf(h))) + (float)bias[i % cols]);
}
