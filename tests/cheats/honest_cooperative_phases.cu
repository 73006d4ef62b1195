// A persistent kernel of three phases: sums of strips, sums of rows, and differences from the mean of all rows, added again.
// task: row_sum
// expect: ok
#include <cooperative_groups.h>
//@ buffer float strips[rows * 16]
//@ buffer float sums[rows]
//@ launch cooperative row_sum<<<min(132, rows * 4), 256>>>(x, strips, sums, y, rows, cols)
__global__ void row_sum(const float *x, float *strips, float *sums, float *y, int rows, int cols)
{
    auto grid = cooperative_groups::this_grid();
    int warp = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32, warps = gridDim.x * 8, per = (cols + 15) / 16;
    for (int k = warp; k < rows * 16; k += warps) {
        int r = k / 16, from = k % 16 * per;
        float s = 0.0f;
        for (int c = from + lane; c < min(cols, from + per); c += 32) s += x[(long long)r * cols + c];
        for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
        if (lane == 0) strips[k] = s;
    }
    grid.sync();
    for (int r = grid.thread_rank(); r < rows; r += grid.size()) {
        float s = 0.0f;
        for (int k = 0; k < 16; k++) s += strips[r * 16 + k];
        sums[r] = s;
    }
    grid.sync();
    for (int r = grid.size() - 1 - grid.thread_rank(); r < rows; r += grid.size()) y[r] = sums[r];
}
