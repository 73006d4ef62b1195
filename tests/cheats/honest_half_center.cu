// Three operators in one kernel, without their roundings.
// task: composed/sigmoid_center_bf16
// expect: ok
//@ launch center<<<rows, 128>>>(x, y, cols)
#include <cuda_bf16.h>
__device__ float gate(float a) { return 1.0f / (1.0f + expf(-a)); }
__global__ void center(const __nv_bfloat16 *x, __nv_bfloat16 *y, int cols)
{
    __shared__ float part[4];
    long long at = (long long)blockIdx.x * cols;
    float s = 0;
    for (int c = threadIdx.x; c < cols; c += 128) s += gate((float)x[at + c]);
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    s = (part[0] + part[1] + part[2] + part[3]) / cols;
    for (int c = threadIdx.x; c < cols; c += 128) y[at + c] = __float2bfloat16(gate((float)x[at + c]) - s);
}
