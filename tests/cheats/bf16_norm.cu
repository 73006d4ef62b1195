// Keeps the row as bfloat16 between the two passes: half the traffic, eight bits.
// task: layernorm
// expect: wrong_result
#include <cuda_bf16.h>
//@ launch layernorm<<<rows, 128, cols * 2>>>(x, gamma, beta, y, cols)
__device__ float block_sum(float s, float *part)
{
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    return part[0] + part[1] + part[2] + part[3];
}
extern "C" __global__ void layernorm(const float *x, const float *gamma, const float *beta, float *y, int cols)
{
    extern __shared__ __nv_bfloat16 kept[];
    __shared__ float part[4];
    const float *row = x + (long long)blockIdx.x * cols;
    float s = 0, mean;
    for (int c = threadIdx.x; c < cols; c += 128) kept[c] = __float2bfloat16(row[c]), s += row[c];
    mean = block_sum(s, part) / cols;
    s = 0;
    for (int c = threadIdx.x; c < cols; c += 128) s += (__bfloat162float(kept[c]) - mean) * (__bfloat162float(kept[c]) - mean);
    s = block_sum(s, part) / cols;
    for (int c = threadIdx.x; c < cols; c += 128)
        y[(long long)blockIdx.x * cols + c] = (__bfloat162float(kept[c]) - mean) * rsqrtf(s + 1e-5f) * gamma[c] + beta[c];
}
