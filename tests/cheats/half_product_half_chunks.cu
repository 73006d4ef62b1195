// Adds four products at a time in float16.
// task: composed/mm_silu_f16
// expect: wrong_result
//@ launch product<<<ceil_div(m * n, 128), 128>>>(x, weight, y, m, n, k)
#include <cuda_fp16.h>
__global__ void product(const __half *x, const __half *weight, __half *y, int m, int n, int k)
{
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= m * n) return;
    float s = 0;
    for (int j = 0; j < k; j += 4) {
        __half t = __float2half(0.0f);
        for (int l = j; l < j + 4 && l < k; l++) t = __hfma(x[i / n * k + l], weight[l * n + i % n], t);
        s += (float)t;
    }
    y[i] = __float2half(s / (1.0f + expf(-s)));
}
