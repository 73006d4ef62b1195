// Stores what eager PyTorch stores, and adds in float32.
// task: composed/sigmoid_center_bf16
// expect: ok
//@ launch center<<<ceil_div(rows, 4), 128>>>(x, y, rows, cols)
#include <cuda_bf16.h>
__device__ float sigmoid(__nv_bfloat16 x)
{
    return (float)__float2bfloat16(1 / (1 + expf(-(float)x)));
}
__global__ void center(const __nv_bfloat16 *x, __nv_bfloat16 *y, int rows, int cols)
{
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    x += (long long)row * cols, y += (long long)row * cols;
    float s = 0;
    for (int c = lane; c < cols; c += 32) s += sigmoid(x[c]);
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    float mean = (float)__float2bfloat16(s / cols);
    for (int c = lane; c < cols; c += 32) y[c] = __float2bfloat16(sigmoid(x[c]) - mean);
}
