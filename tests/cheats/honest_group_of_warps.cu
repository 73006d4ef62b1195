// Groups of four warps meet twice: the warps of a group spin on a word of shared memory until all are there.
// task: relu
// expect: ok
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ cg::block_tile_memory<256> memory;
    __shared__ float s[256];
    auto block = cg::this_thread_block(memory);
    auto group = cg::tiled_partition<128>(block);
    int i = blockIdx.x * 256 + threadIdx.x, other = threadIdx.x ^ 96;
    s[threadIdx.x] = i < n ? x[i] : 0.0f;
    group.sync();
    float v = s[other];
    group.sync();
    s[other] = fmaxf(v, 0.0f);
    group.sync();
    if (i < n) y[i] = s[threadIdx.x];
}
