// Device functions of plain kernels. `#` is the name of a fold. In a line of its own `a ? b;` adds b to a.
// clang-format off

//@ pack
template <typename T, int V> struct alignas(sizeof(T) * V) Pack {
    T v[V];
};

//@ larger
template <typename T> __device__ T larger(T a, T b)
{
    return b > a || b != b ? b : a;
}

//@ smaller
template <typename T> __device__ T smaller(T a, T b)
{
    return b < a || b != b ? b : a;
}

//@ shuffle
template <typename T> __device__ T block_#(T v)
{
    __shared__ T part[32];
    for (int d = 16; d > 0; d /= 2)
        v ? __shfl_xor_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int w = 1; w < blockDim.x / 32; w++)
        v ? part[w];
    __syncthreads();
    return v;
}

//@ tree
template <typename T> __device__ T tree_#(T v)
{
    __shared__ T part[1024];
    int tid = threadIdx.x;
    part[tid] = v;
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        __syncthreads();
        if (tid < s)
            part[tid] ? part[tid + s];
    }
    __syncthreads();
    v = part[0];
    __syncthreads();
    return v;
}
