// CUB: the agent of DeviceReduce
// task: row_sums
// expect: ok
//@ launch sums<<<rows, 128>>>(x, y, cols)
#include <cub/agent/agent_reduce.cuh>
using Policy = cub::AgentReducePolicy<128, 4, float, 1, cub::BLOCK_REDUCE_WARP_REDUCTIONS, cub::LOAD_DEFAULT>;
using Agent = cub::detail::reduce::AgentReduce<Policy, const float *, float *, int, ::cuda::std::plus<>, float>;
extern "C" __global__ void sums(const float *x, float *y, int cols)
{
    __shared__ Agent::TempStorage room;
    float s = Agent(room, x + (size_t)blockIdx.x * cols, ::cuda::std::plus<>()).ConsumeRange(0, cols);
    if (!threadIdx.x) y[blockIdx.x] = s;
}
