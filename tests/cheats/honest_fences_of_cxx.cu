// A relaxed ticket between a release fence and an acquire fence.
// task: row_sum
// expect: ok
//@ buffer float part[rows * 4]
//@ buffer unsigned count[rows]
//@ launch clear<<<ceil_div(rows, 128), 128>>>(count, rows)
//@ launch split<<<dim3(4, rows), 128>>>(x, part, count, y, cols)
#include <cuda/atomic>
using Dev = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
using Blk = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
using Clu = cuda::atomic_ref<unsigned, cuda::thread_scope_block>;
__global__ void clear(unsigned *count, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) count[i] = 0;
}
__global__ void split(const float *x, float *part, unsigned *count, float *y, int cols)
{
    __shared__ float lanes[128];
    __shared__ unsigned ticket;
    int t = threadIdx.x;
    long long r = blockIdx.y;
    float s = 0.0f;
    for (int c = blockIdx.x * 128 + t; c < cols; c += 512) s += x[r * cols + c];
    lanes[t] = s;
    __syncthreads();
    for (int h = 64; h > 0; h >>= 1) {
        if (t < h) lanes[t] += lanes[t + h];
        __syncthreads();
    }
    if (t == 0) part[r * 4 + blockIdx.x] = lanes[0];
    __syncthreads();
    if (t == 0) {
        cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
        ticket = Dev(count[r]).fetch_add(1, cuda::memory_order_relaxed);
        cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
    }
    __syncthreads();
    if (ticket == 3 && t == 0) {
        float total = 0.0f;
        for (int b = 0; b < 4; b++) total += part[r * 4 + b];
        y[r] = total;
    }
}
