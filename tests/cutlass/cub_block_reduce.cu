// CUB: sums of rows by BlockReduce, three algorithms
// task: row_sums
// expect: ok
//@ launch sums<<<rows, 128>>>(x, y, cols)
#include <cub/block/block_reduce.cuh>
template <cub::BlockReduceAlgorithm A> __device__ float total(float v)
{
    using Reduce = cub::BlockReduce<float, 128, A>;
    __shared__ typename Reduce::TempStorage room;
    float s = Reduce(room).Sum(v);
    __syncthreads();
    return s;
}
extern "C" __global__ void sums(const float *x, float *y, int cols)
{
    float v = 0;
    for (int i = threadIdx.x; i < cols; i += 128) v += x[(size_t)blockIdx.x * cols + i];
    float s = blockIdx.x % 3 == 0   ? total<cub::BLOCK_REDUCE_RAKING>(v)
              : blockIdx.x % 3 == 1 ? total<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(v)
                                    : total<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(v);
    if (!threadIdx.x) y[blockIdx.x] = s;
}
