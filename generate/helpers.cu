// Device functions of generated kernels.

//@ pack
template <typename T, int V> struct alignas(sizeof(T) * V) Pack {
    T v[V];
};

//@ over
// A quotient: of 32 bits where both numbers allow it.
__device__ __forceinline__ long long over(long long a, long long b)
{
    return (a | b) >> 32 ? a / b : (long long)((unsigned)a / (unsigned)b);
}

//@ fold
// f over the values of T threads, which lie in one warp or are all threads of the block.
template <int T, typename A, typename F> __device__ __forceinline__ A fold(A v, F f, A *shared)
{
#pragma unroll
    for (int d = (T < 32 ? T : 32) / 2; d; d /= 2) v = f(v, __shfl_xor_sync(0xffffffffu, v, d));
    if (T <= 32) return v;
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    v = shared[0];
#pragma unroll
    for (int w = 1; w < T / 32; w++) v = f(v, shared[w]);
    __syncthreads();
    return v;
}

//@ fold_columns
// f over the values of the threads below each other: T rows of 32 threads.
template <int T, typename A, typename F>
__device__ __forceinline__ A fold_columns(A v, F f, A *shared)
{
    if (T == 1) return v;
    shared[threadIdx.y * 32 + threadIdx.x] = v;
    __syncthreads();
    v = shared[threadIdx.x];
#pragma unroll
    for (int w = 1; w < T; w++) v = f(v, shared[w * 32 + threadIdx.x]);
    __syncthreads();
    return v;
}
