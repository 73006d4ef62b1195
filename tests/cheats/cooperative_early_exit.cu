// A block without work leaves before the barrier of the grid, at which the others wait for ever.
// task: relu
// expect sim: race
// expect cuda: timeout
// says sim: a barrier of the grid must be reached by all
#include <cooperative_groups.h>
//@ launch cooperative relu<<<64, 256>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    if (blockIdx.x * 256 >= n) return;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 64 * 256) y[i] = x[i];
    cooperative_groups::this_grid().sync();
    for (int i = (63 - blockIdx.x) * 256 + threadIdx.x; i < n; i += 64 * 256) y[i] = y[i] > 0.0f ? y[i] : 0.0f;
}
