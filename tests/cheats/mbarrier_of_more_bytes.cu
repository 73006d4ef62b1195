// An mbarrier expects twice the bytes that its copy brings.
// task: relu
// expect: timeout
// says sim: 1024 bytes fewer than expect_tx
#include <cuda/barrier>
#include <cuda/ptx>
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__global__ void relu(const float *x, float *y, int n)
{
    __shared__ alignas(128) float stage[256];
    #pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    int t = threadIdx.x, first = blockIdx.x * 256, i = first + t;
    if (first + 256 > n) {
        if (i < n) y[i] = fmaxf(x[i], 0.0f);
        return;
    }
    if (t == 0) { init(&bar, blockDim.x); cuda::ptx::fence_proxy_async(cuda::ptx::space_shared); }
    __syncthreads();
    cuda::barrier<cuda::thread_scope_block>::arrival_token token;
    if (t == 0) {
        cuda::device::memcpy_async_tx(stage, x + first, cuda::aligned_size_t<16>(sizeof stage), bar);
        token = cuda::device::barrier_arrive_tx(bar, 1, 2 * sizeof stage);
    } else token = bar.arrive();
    bar.wait(cuda::std::move(token));
    stage[t] = fmaxf(stage[t], 0.0f);
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
    __syncthreads();
    if (t == 0) {
        cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, y + first, stage, sizeof stage);
        cuda::ptx::cp_async_bulk_commit_group();
        cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>());
    }
}
