// Cooperative groups: tiles of eight lanes, their reductions and barriers.
// task: row_sum
// expect: ok
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
//@ launch row_sum<<<ceil_div(rows, 16), 128>>>(x, y, rows, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int rows, int cols)
{
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int r = blockIdx.x * 16 + tile.meta_group_rank();
    if (r >= rows) return;
    float s = 0;
    for (int c = tile.thread_rank(); c < cols; c += 8) s += x[(long long)r * cols + c];
    s = cg::reduce(tile, s, cg::plus<float>());
    if (tile.thread_rank() == 0) y[r] = s;
}
