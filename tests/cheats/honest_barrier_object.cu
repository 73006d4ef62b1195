// libcu++'s barrier: copies that arrive at it, a token between arrival and wait, and a drop.
// task: row_sum
// expect: ok
#include <cuda/barrier>
//@ launch row_sum<<<rows, 128>>>(x, y, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    using Barrier = cuda::barrier<cuda::thread_scope_block>;
    __shared__ float stage[128], part[4];
    __shared__ Barrier full, done;
    if (threadIdx.x == 0) {
        init(&full, 128);
        init(&done, 128);
    }
    __syncthreads();
    const float *row = x + (long long)blockIdx.x * cols;
    float s = 0;
    for (int first = 0; first < cols; first += 128) {
        int c = first + threadIdx.x;
        if (c < cols) cuda::memcpy_async(&stage[threadIdx.x], row + c, sizeof(float), full);
        full.arrive_and_wait();
        int other = (threadIdx.x + 32) % 128;
        if (first + other < cols) s += stage[other];
        auto token = full.arrive();
        full.wait(cuda::std::move(token));
    }
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    if (threadIdx.x > 0) {
        done.arrive_and_drop();
        return;
    }
    done.arrive_and_wait();
    y[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}
