// Tiles of sixteen lanes vote, each with its own mask.
// task: relu
// expect: ok
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    float v = i < n ? x[i] : 0.0f;
    unsigned keep = tile.ballot(v > 0.0f);
    bool some = tile.any(v > 0.0f);
    float out = some && (keep >> tile.thread_rank() & 1) ? v : 0.0f;
    if (i < n) y[i] = out;
}
