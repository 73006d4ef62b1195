// A cooperative launch with more blocks than the device can have at once, at its timed size alone.
// task: relu
// expect: launch_error
// says sim: blocks, and at most 1056 are resident at once
#include <cooperative_groups.h>
//@ launch cooperative relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    float v = i < n ? x[i] : 0.0f;
    cooperative_groups::this_grid().sync();
    if (i < n) y[i] = v > 0.0f ? v : 0.0f;
}
