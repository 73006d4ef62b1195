// CUB: running sums, taken apart by BlockAdjacentDifference and summed again
// task: cumsum_rows
// expect: ok
//@ launch scan<<<rows, 128>>>(x, y, cols)
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_scan.cuh>
struct Second {
    __device__ float operator()(float, float b) const { return b == b ? 1.0f : b; }
};
extern "C" __global__ void scan(const float *x, float *y, int cols)
{
    using Scan = cub::BlockScan<float, 128>;
    using Difference = cub::BlockAdjacentDifference<float, 128>;
    __shared__ Scan::TempStorage room;
    __shared__ Difference::TempStorage more;
    float before = 0;
    x += (size_t)blockIdx.x * cols, y += (size_t)blockIdx.x * cols;
    for (int at = 0; at < cols; at += 128) {
        int i = at + threadIdx.x;
        float v[1] = {i < cols ? x[i] : 0.0f}, one[1], all;
        Difference(more).SubtractLeft(v, one, Second());
        if (!threadIdx.x) one[0] = 1.0f;
        Scan(room).InclusiveSum(v[0], v[0], all);
        if (i < cols) y[i] = (before + v[0]) * one[0];
        before += all;
        __syncthreads();
    }
}
