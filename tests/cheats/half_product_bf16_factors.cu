// Rounds factors in float16 to bfloat16.
// task: composed/mm_silu_f16
// expect: wrong_result
//@ launch product<<<ceil_div(m * n, 128), 128>>>(x, weight, y, m, n, k)
#include <cuda_fp16.h>
#include <cuda_bf16.h>
__device__ float narrow(__half v) { return (float)__float2bfloat16((float)v); }
__global__ void product(const __half *x, const __half *weight, __half *y, int m, int n, int k)
{
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= m * n) return;
    float s = 0;
    for (int j = 0; j < k; j++) s += narrow(x[i / n * k + j]) * narrow(weight[j * n + i % n]);
    y[i] = __float2half(s / (1.0f + expf(-s)));
}
