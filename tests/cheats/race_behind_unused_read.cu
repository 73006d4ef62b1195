// A missing barrier before a bulk copy, behind a load of unwritten memory that nothing depends on.
// task: relu
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic
// says sim: no barrier between
#include <cuda/barrier>
#include <cuda/ptx>
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    __shared__ alignas(128) float stage[256];
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    int first = blockIdx.x * 256, i = first + threadIdx.x;
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    __syncthreads();
    if (first + 256 <= n) {
        cuda::barrier<cuda::thread_scope_block>::arrival_token token;
        if (threadIdx.x == 0) {
            cuda::device::memcpy_async_tx(stage, x + first, cuda::aligned_size_t<16>(sizeof stage), bar);
            token = cuda::device::barrier_arrive_tx(bar, 1, sizeof stage);
        } else token = bar.arrive();
        bar.wait(cuda::std::move(token));
    } else {
        if (i < n) stage[threadIdx.x] = x[i];
        __syncthreads();
    }
    int at = 255 - threadIdx.x, j = first + at;
    float v = stage[at];
    __syncthreads();
    if (first + 256 <= n) {
        stage[at] = v > 0.0f ? v : 0.0f;
        cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
        if (threadIdx.x == 0) {
            cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, y + first, stage, sizeof stage);
            cuda::ptx::cp_async_bulk_commit_group();
            cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>());
        }
    } else if (j < n) y[j] = v > 0.0f ? v : 0.0f;
}
