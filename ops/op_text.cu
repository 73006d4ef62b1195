/* What kernels of many operators have. */

//@ block_reduce
#ifndef OP_BLOCK_REDUCE
#define OP_BLOCK_REDUCE
template <typename T, typename F>
__device__ T op_block_reduce(T v, F f, T *shared)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warps = (blockDim.x + 31) / 32;
    for (int d = 16; d; d /= 2) v = f(v, __shfl_xor_sync(0xffffffffu, v, d));
    if (warps == 1) return v;
    __syncthreads();
    if (!lane) shared[warp] = v;
    __syncthreads();
    if (warps > 8) {
        if (!warp) {
            v = shared[lane < warps ? lane : 0];
            for (int d = 16; d; d /= 2) {
                const T o = __shfl_down_sync(0xffffffffu, v, d);
                if (lane + d < warps) v = f(v, o);
            }
            if (!lane) shared[0] = v;
        }
        __syncthreads();
        return shared[0];
    }
    v = shared[0];
    for (int w = 1; w < warps; w++) v = f(v, shared[w]);
    return v;
}
#endif
