// cp.async in two stages, each waited for before it is read.
// task: relu
// expect: ok
#include <cuda_pipeline.h>
//@ launch relu<<<ceil_div(n, 1024), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ float s[2][256];
    int t = threadIdx.x, first = blockIdx.x * 1024 + t;
    if (first < n) __pipeline_memcpy_async(&s[0][t ^ 1], &x[first], 4);
    __pipeline_commit();
    for (int k = 0; k < 4; k++) {
        int next = first + 256 * (k + 1);
        if (k < 3 && next < n) __pipeline_memcpy_async(&s[(k + 1) & 1][t ^ 1], &x[next], 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        int i = blockIdx.x * 1024 + 256 * k + (t ^ 1);
        if (i < n) y[i] = fmaxf(s[k & 1][t], 0.0f);
        __syncthreads();
    }
}
