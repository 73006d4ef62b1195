// libcu++'s pipeline of a block: two stages in shared memory, copied together and passed on by mbarriers.
// task: relu
// expect: ok
#include <cooperative_groups.h>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
//@ launch relu<<<ceil_div(n, 2048), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ float stage[2][256];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline(block, &state);
    int first = blockIdx.x * 2048;
    auto count = [&](int t) { return max(0, min(256, n - first - t * 256)); };
    auto fetch = [&](int t) {
        pipe.producer_acquire();
        if (count(t)) cuda::memcpy_async(block, stage[t & 1], x + first + t * 256, sizeof(float) * count(t), pipe);
        pipe.producer_commit();
    };
    fetch(0);
    for (int t = 0; t < 8; t++) {
        if (t < 7) fetch(t + 1);
        pipe.consumer_wait();
        int i = (threadIdx.x + 32) % 256;
        if (i < count(t)) y[first + t * 256 + i] = fmaxf(stage[t & 1][i], 0.0f);
        pipe.consumer_release();
    }
}
