// CUB: the greatest of each row by BlockMergeSort
// task: amax_rows
// expect: ok
//@ launch greatest<<<rows, 128>>>(x, y, cols)
#include <cub/block/block_merge_sort.cuh>
struct Greater {
    __device__ bool operator()(float a, float b) const { return a > b; }
};
extern "C" __global__ void greatest(const float *x, float *y, int cols)
{
    using Sort = cub::BlockMergeSort<float, 128, 1>;
    __shared__ Sort::TempStorage room;
    float v[1] = {-INFINITY};
    for (int i = threadIdx.x; i < cols; i += 128) v[0] = fmaxf(v[0], x[(size_t)blockIdx.x * cols + i]);
    Sort(room).Sort(v, Greater());
    if (!threadIdx.x) y[blockIdx.x] = v[0];
}
