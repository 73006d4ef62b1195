// CUB: rows shared among blocks by GridEvenShare
// task: relu_f32
// expect: ok
//@ launch relu<<<min(264, ceil_div(n, 512)), 128>>>(x, y, n)
#include <cub/grid/grid_even_share.cuh>
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    cub::GridEvenShare<int> share;
    share.DispatchInit(n, gridDim.x, 512);
    share.template BlockInit<512, cub::GRID_MAPPING_STRIP_MINE>();
    for (int at = share.block_offset; at < share.block_end; at += share.block_stride)
        for (int i = at + threadIdx.x; i < min(at + 512, n); i += 128) y[i] = fmaxf(x[i], 0.0f);
}
