// Each lane adds its squares in bfloat16. Of drawn rows the errors of 128 such sums cancel; where a few large
// elements come first, the others are lost.
// task: composed/scale_rmsnorm_bf16
// expect: wrong_result
//@ launch rms<<<rows, 128>>>(x, scale, weight, y, rows, cols)
#include <cuda_bf16.h>
__global__ void rms(const __nv_bfloat16 *x, const __nv_bfloat16 *scale, const __nv_bfloat16 *weight, __nv_bfloat16 *y, int rows, int cols)
{
    __shared__ float part[4];
    long long at = (long long)blockIdx.x * cols;
    __nv_bfloat16 sum = __float2bfloat16(0.0f);
    for (int c = threadIdx.x; c < cols; c += 128) {
        float h = (float)x[at + c] * (float)scale[c];
        sum = __float2bfloat16((float)sum + h * h);
    }
    float s = (float)sum;
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    s = part[0] + part[1] + part[2] + part[3];
    float r = rsqrtf(s / cols + 1e-6f);
    for (int c = threadIdx.x; c < cols; c += 128)
        y[at + c] = __float2bfloat16((float)x[at + c] * (float)scale[c] * r * (float)weight[c]);
}
