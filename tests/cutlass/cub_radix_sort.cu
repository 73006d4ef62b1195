// CUB: the greatest of each row by BlockRadixSort
// task: amax_rows
// expect: ok
//@ launch greatest<<<rows, 128>>>(x, y, cols)
#include <cub/block/block_radix_sort.cuh>
extern "C" __global__ void greatest(const float *x, float *y, int cols)
{
    using Sort = cub::BlockRadixSort<float, 128, 2>;
    __shared__ Sort::TempStorage room;
    float v[2] = {-INFINITY, -INFINITY};
    for (int i = threadIdx.x; i < cols; i += 128) v[i / 128 % 2] = fmaxf(v[i / 128 % 2], x[(size_t)blockIdx.x * cols + i]);
    Sort(room).SortDescending(v);
    if (!threadIdx.x) y[blockIdx.x] = v[0];
}
