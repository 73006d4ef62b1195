// CUB: running sums of rows by BlockLoad, BlockScan and BlockStore
// task: cumsum_rows
// expect: ok
//@ launch scan<<<rows, 128>>>(x, y, cols)
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
struct Before {
    float sum;
    __device__ float operator()(float all)
    {
        float old = sum;
        sum += all;
        return old;
    }
};
extern "C" __global__ void scan(const float *x, float *y, int cols)
{
    using Load = cub::BlockLoad<float, 128, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Store = cub::BlockStore<float, 128, 4, cub::BLOCK_STORE_TRANSPOSE>;
    using Scan = cub::BlockScan<float, 128, cub::BLOCK_SCAN_RAKING>;
    __shared__ union {
        Load::TempStorage load;
        Store::TempStorage store;
        Scan::TempStorage scan;
    } room;
    Before before = {0};
    x += (size_t)blockIdx.x * cols, y += (size_t)blockIdx.x * cols;
    for (int at = 0; at < cols; at += 512) {
        float v[4];
        int n = min(512, cols - at);
        Load(room.load).Load(x + at, v, n, 0.0f);
        __syncthreads();
        Scan(room.scan).InclusiveSum(v, v, before);
        __syncthreads();
        Store(room.store).Store(y + at, v, n);
        __syncthreads();
    }
}
