// Two stages in flight and a wait for one group fewer than needed: each step reads what the step before it
// left in the buffer.
// task: relu
// expect sim: out_of_bounds
// expect cuda: wrong_result | nondeterministic
#include <cuda_pipeline.h>
//@ launch relu<<<ceil_div(n, 512), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ float s[2][256];
    int t = threadIdx.x, first = blockIdx.x * 512 + t;
    for (int k = 0; k < 2; k++) {
        if (first + 256 * k < n) __pipeline_memcpy_async(&s[k][t], &x[first + 256 * k], 4);
        __pipeline_commit();
    }
    for (int k = 0; k < 2; k++) {
        __pipeline_wait_prior(2 - k);
        if (first + 256 * k < n) y[first + 256 * k] = fmaxf(s[k][t], 0.0f);
    }
}
