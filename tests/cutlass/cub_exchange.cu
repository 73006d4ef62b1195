// CUB: copies through BlockExchange and iterators with cache hints
// task: relu_f32
// expect: ok
//@ launch relu<<<ceil_div(n, 512), 128>>>(x, y, n)
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>
#include <cub/iterator/cache_modified_input_iterator.cuh>
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    using Exchange = cub::BlockExchange<float, 128, 4>;
    __shared__ Exchange::TempStorage room;
    cub::CacheModifiedInputIterator<cub::LOAD_LDG, float> in(x + (size_t)blockIdx.x * 512);
    float v[4];
    int here = min(512, n - (int)blockIdx.x * 512);
    cub::LoadDirectStriped<128>(threadIdx.x, in, v, here, 0.0f);
    Exchange(room).StripedToBlocked(v);
    for (int i = 0; i < 4; i++) v[i] = fmaxf(v[i], 0.0f);
    cub::StoreDirectBlocked(threadIdx.x, y + (size_t)blockIdx.x * 512, v, here);
}
