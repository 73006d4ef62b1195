// Copies to shared memory in the background and never waits for it; the barrier does not help.
// task: relu
// expect sim: out_of_bounds
// expect cuda: wrong_result | nondeterministic
// says sim: that the cp.async of line 12 has not brought
#include <cuda_pipeline.h>
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ float s[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
    if (i < n) __pipeline_memcpy_async(&s[t], &x[i], 4);
    __pipeline_commit();
    __syncthreads();
    if (i < n) y[i] = fmaxf(s[t], 0.0f);
}
