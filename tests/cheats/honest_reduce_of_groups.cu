// Groups of eight, then of 32, by cooperative_groups::reduce.
// task: row_sum
// expect: ok
//@ launch add<<<ceil_div(rows, 8), 256>>>(x, y, rows, cols)
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void add(const float *x, float *y, int rows, int cols)
{
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    int row = blockIdx.x * 8 + warp.meta_group_rank();
    if (row >= rows) return;
    float v = 0;
    for (int i = warp.thread_rank(); i < cols; i += 32) v += x[(long long)row * cols + i];
    if (cols < 32) {
        auto some = cg::tiled_partition<8>(warp);
        v = cg::reduce(some, v, cg::plus<float>());
        v = some.thread_rank() ? 0.0f : v;
    }
    v = cg::reduce(warp, v, cg::plus<float>());
    if (warp.thread_rank() == 0) y[row] = v;
}
