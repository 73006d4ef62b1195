// The values of a row are sorted by CUB before they are added, the small ones first.
// task: row_sums
// expect: ok
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
//@ launch row_sum<<<rows, 128>>>(x, y, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    using Sort = cub::BlockRadixSort<float, 128, 4>;
    using Reduce = cub::BlockReduce<float, 128>;
    __shared__ union {
        typename Sort::TempStorage sort;
        typename Reduce::TempStorage reduce;
    } room;
    const float *row = x + (long long)blockIdx.x * cols;
    float s = 0;
    for (int from = 0; from < cols; from += 512) {
        float v[4];
        for (int i = 0; i < 4; i++) {
            int c = from + i * 128 + threadIdx.x;
            v[i] = c < cols ? row[c] : 0.f;
        }
        Sort(room.sort).Sort(v);
        __syncthreads();
        for (uint i = 0; i < 4; i++) s += v[i];
    }
    s = Reduce(room.reduce).Sum(s);
    if (threadIdx.x == 0) y[blockIdx.x] = s;
}
