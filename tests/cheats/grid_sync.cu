// The blocks of a grid wait for each other in a launch that is not cooperative.
// task: relu
// expect: launch_error
// says sim: the launch is not cooperative
#include <cooperative_groups.h>
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    float v = i < n ? x[i] : 0.0f;
    cooperative_groups::this_grid().sync();
    if (i < n) y[i] = v > 0.0f ? v : 0.0f;
}
