// CUB: sums of pairs of a key and a value, with a functor of the source
// task: row_sums
// expect: ok
//@ launch sums<<<rows, 128>>>(x, y, cols)
#include <cub/thread/thread_reduce.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/util_type.cuh>
extern "C" __global__ void sums(const float *x, float *y, int cols)
{
    using Reduce = cub::BlockReduce<cub::KeyValuePair<int, float>, 128>;
    __shared__ Reduce::TempStorage room;
    float part[4] = {0, 0, 0, 0};
    for (int i = threadIdx.x; i < cols; i += 128) part[i / 128 % 4] += x[(size_t)blockIdx.x * cols + i];
    cub::KeyValuePair<int, float> pair(1, cub::ThreadReduce(part, ::cuda::std::plus<>()));
    pair = Reduce(room).Reduce(pair, [](const auto &a, const auto &b) { return cub::KeyValuePair<int, float>(a.key + b.key, a.value + b.value); });
    if (!threadIdx.x) y[blockIdx.x] = pair.key == 128 ? pair.value : 0.0f;
}
