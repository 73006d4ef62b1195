// Rounds the product as eager PyTorch stores it.
// task: composed/scale_rmsnorm_bf16
// expect: ok
//@ launch rms<<<rows, 128>>>(x, scale, weight, y, rows, cols)
#include <cuda_bf16.h>
__global__ void rms(const __nv_bfloat16 *x, const __nv_bfloat16 *scale, const __nv_bfloat16 *weight, __nv_bfloat16 *y, int rows, int cols)
{
    __shared__ float part[4];
    long long at = (long long)blockIdx.x * cols;
    float s = 0;
    for (int c = threadIdx.x; c < cols; c += 128) { float h = (float)__float2bfloat16((float)x[at + c] * (float)scale[c]); s += h * h; }
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    s = part[0] + part[1] + part[2] + part[3];
    float r = rsqrtf(s / cols + 1e-6f);
    for (int c = threadIdx.x; c < cols; c += 128) y[at + c] = __float2bfloat16((float)__float2bfloat16((float)x[at + c] * (float)scale[c]) * r * (float)weight[c]);
}
