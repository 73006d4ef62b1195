// Rows come by cp.async into two tiles of one group. The first tile's last row is the second one's first, and
// copies that are under way together land in any order: which one stays is luck.
// task: relu
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic
// says sim: both under way at the same time, leave different bytes
#include <cuda_pipeline.h>
//@ launch relu<<<ceil_div(n, 512), 32>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ float s[16 * 32];
    int t = threadIdx.x, first = blockIdx.x * 512 + t;
    for (int half = 0; half < 2; half++)
        for (int row = 0; row < 9 - half; row++) {
            int i = first + half * 256 + row * 32;
            if (i < n) __pipeline_memcpy_async(&s[half * 256 + row * 32 + t], &x[i - (row == 8)], 4);
        }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    for (int row = 0; row < 16; row++)
        if (first + row * 32 < n) y[first + row * 32] = fmaxf(s[row * 32 + t], 0.0f);
}
