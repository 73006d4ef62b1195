// CUB: running sums of rows, a warp each
// task: cumsum_rows
// expect: ok
//@ launch scan<<<rows, 32>>>(x, y, cols)
#include <cub/warp/warp_scan.cuh>
extern "C" __global__ void scan(const float *x, float *y, int cols)
{
    using Scan = cub::WarpScan<float>;
    __shared__ Scan::TempStorage room;
    float before = 0;
    x += (size_t)blockIdx.x * cols, y += (size_t)blockIdx.x * cols;
    for (int at = 0; at < cols; at += 32) {
        int i = at + threadIdx.x;
        float v = i < cols ? x[i] : 0.0f, all;
        Scan(room).InclusiveSum(v, v, all);
        if (i < cols) y[i] = before + v;
        before += all;
        __syncwarp();
    }
}
