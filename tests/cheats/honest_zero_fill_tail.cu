// The last vector is copied with zero fill: cp.async reads the bytes that are there, no more.
// task: relu
// expect: ok
//@ launch relu<<<ceil_div(n, 1024), 256>>>(x, y, n)
#include <cuda_pipeline.h>
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ __align__(16) float s[1024];
    int t = threadIdx.x, first = blockIdx.x * 1024 + 4 * t;
    int have = n - first < 0 ? 0 : n - first > 4 ? 4 : n - first;
    __pipeline_memcpy_async(&s[4 * t], have ? &x[first] : x, 16, 16 - 4 * have);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    for (int j = 0; j < have; j++) y[first + j] = fmaxf(s[4 * t + j], 0.0f);
}
