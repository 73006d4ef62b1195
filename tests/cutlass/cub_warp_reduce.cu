// CUB: sums of rows, a warp each
// task: row_sums
// expect: ok
//@ launch sums<<<ceil_div(rows, 4), 128>>>(x, y, rows, cols)
#include <cub/cub.cuh>
extern "C" __global__ void sums(const float *x, float *y, int rows, int cols)
{
    using Reduce = cub::WarpReduce<float>;
    __shared__ Reduce::TempStorage room[4];
    int warp = threadIdx.x / 32, row = blockIdx.x * 4 + warp;
    float v = 0;
    for (int i = threadIdx.x % 32; row < rows && i < cols; i += 32) v += x[(size_t)row * cols + i];
    v = Reduce(room[warp]).Sum(v);
    if (row < rows && threadIdx.x % 32 == 0) y[row] = v;
}
