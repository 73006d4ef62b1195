// A product in two launches, with sums in float32: a simulator runs it at the timed size with fewer rows.
// task: composed/mm_silu_f16
// expect sim: ok
// expect cuda: ok
//@ buffer half h[m * n]
//@ launch product<<<dim3(ceil_div(n, 128), ceil_div(m, 4)), 128>>>(x, weight, h, m, n, k)
//@ launch silu<<<ceil_div(m * n, 256), 256>>>(h, y, m * n)
#include <cuda_fp16.h>
extern "C" __global__ void product(const __half *x, const __half *w, __half *h, int m, int n, int k)
{
    int j = blockIdx.x * 128 + threadIdx.x, i = blockIdx.y * 4;
    float sum[4] = {0, 0, 0, 0};
    if (j >= n) return;
    for (int e = 0; e < k; e++) {
        float b = __half2float(w[e * n + j]);
        for (int r = 0; r < 4; r++)
            if (i + r < m) sum[r] += __half2float(x[(i + r) * k + e]) * b;
    }
    for (int r = 0; r < 4; r++)
        if (i + r < m) h[(i + r) * n + j] = __float2half(sum[r]);
}
extern "C" __global__ void silu(const __half *h, __half *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float v = __half2float(h[i]);
    y[i] = __float2half(v / (1 + expf(-v)));
}
