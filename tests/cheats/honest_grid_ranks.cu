// A grid group that gives ranks and never synchronises.
// task: relu
// expect: ok
#include <cooperative_groups.h>
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    auto grid = cooperative_groups::this_grid();
    for (unsigned long long i = grid.thread_rank(); i < n; i += grid.num_threads())
        y[i] = x[i] > 0 ? x[i] : 0;
}
