// The block sum, which thread 0 alone has, is taken from each thread.
// task: softmax
// expect sim: race
// expect cuda: wrong_result | nondeterministic
//@ launch softmax<<<rows, 256>>>(x, y, cols)
#include <cuda/std/limits>
#include <cuda/std/cmath>
#include <cub/cub.cuh>
template <typename T, int N> struct Shared { T of[N]; };
template <typename T> __device__ T warp_max(T v)
{
#pragma unroll
    for (int h = 16; h; h >>= 1) v = max(v, __shfl_xor_sync(0xffffffffu, v, h));
    return v;
}
__global__ void softmax(const float *__restrict__ x, float *__restrict__ y, int cols)
{
    using Reduce = cub::BlockReduce<float, 256>;
    __shared__ typename Reduce::TempStorage room;
    __shared__ Shared<float, 9> all;
    const float *row = x + (long long)blockIdx.x * cols;
    float top = -cuda::std::numeric_limits<float>::infinity(), sum = 0;
    for (int i = threadIdx.x; i < cols; i += 256) top = max(top, row[i]);
    top = warp_max(top);
    if (threadIdx.x % 32 == 0) all.of[threadIdx.x / 32] = top;
    __syncthreads();
    top = all.of[0];
    for (int i = 1; i < 8; i++) top = max(top, all.of[i]);
    for (int i = threadIdx.x; i < cols; i += 256) sum += cuda::std::exp(row[i] - top);
    sum = Reduce(room).Sum(sum);
    all.of[8] = sum;
    __syncthreads();
    for (int i = threadIdx.x; i < cols; i += 256) y[(long long)blockIdx.x * cols + i] = cuda::std::exp(row[i] - top) / all.of[8];
}
