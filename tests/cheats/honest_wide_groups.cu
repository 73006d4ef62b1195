// Groups of 64 threads, which share memory that the system keeps in each block.
// task: row_sum
// expect: ok
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
//@ launch row_sum<<<rows, 64>>>(x, y, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    __shared__ cg::block_tile_memory<64> shared;
    auto block = cg::this_thread_block(shared);
    auto tile = cg::tiled_partition<64>(block);
    float s = 0;
    for (int c = tile.thread_rank(); c < cols; c += 64) s += x[(long long)blockIdx.x * cols + c];
    s = cg::reduce(tile, s, cg::plus<float>());
    if (tile.thread_rank() == 0) y[blockIdx.x] = s;
}
