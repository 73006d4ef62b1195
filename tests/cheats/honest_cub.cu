// A row's sum by CUB, which is among CUDA's headers.
// task: row_sum
// expect: ok
#include <cub/block/block_reduce.cuh>
//@ launch row_sum<<<rows, 256>>>(x, y, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    using Reduce = cub::BlockReduce<float, 256>;
    __shared__ typename Reduce::TempStorage room;
    const float *row = x + (long long)blockIdx.x * cols;
    float s = 0;
    for (int c = threadIdx.x; c < cols; c += 256) s += row[c];
    s = Reduce(room).Sum(s);
    if (threadIdx.x == 0) y[blockIdx.x] = s;
}
