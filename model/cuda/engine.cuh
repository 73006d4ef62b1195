/* Device code that all kernels of the engine share: bf16, vectors of 16 bytes, sums in a fixed
 * order. It includes nothing, so that NVRTC compiles the kernels without CUDA's headers. */
#ifndef ENGINE_CUH
#define ENGINE_CUH

struct bf16 {
    unsigned short bits;
};

/* ---- bf16: widened by a shift, rounded to nearest, ties to even ---- */

__device__ __forceinline__ float wide(bf16 h)
{
    return __uint_as_float((unsigned)h.bits << 16);
}

/* Two numbers in a word, the first in its low half. */
__device__ __forceinline__ unsigned pack2(float low, float high)
{
    unsigned word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

__device__ __forceinline__ float low_half(unsigned word)
{
    return __uint_as_float(word << 16);
}
__device__ __forceinline__ float high_half(unsigned word)
{
    return __uint_as_float(word & 0xffff0000u);
}
/* The products of two pairs, each rounded once. */
__device__ __forceinline__ unsigned times2(unsigned a, unsigned b)
{
    unsigned word;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(word) : "r"(a), "r"(b), "r"(0x80008000u));
    return word;
}

__device__ __forceinline__ bf16 narrow(float f)
{
    return bf16{(unsigned short)pack2(f, 0)};
}
__device__ __forceinline__ float rounded(float f)
{
    return low_half(pack2(f, 0));
}

/* ---- 8 numbers in 16 bytes ---- */

__device__ __forceinline__ void unpack8(float (&f)[8], uint4 v)
{
    f[0] = low_half(v.x), f[1] = high_half(v.x), f[2] = low_half(v.y), f[3] = high_half(v.y);
    f[4] = low_half(v.z), f[5] = high_half(v.z), f[6] = low_half(v.w), f[7] = high_half(v.w);
}

__device__ __forceinline__ uint4 pack8(const float (&f)[8])
{
    return make_uint4(pack2(f[0], f[1]), pack2(f[2], f[3]), pack2(f[4], f[5]), pack2(f[6], f[7]));
}

/* Keep numbers packed while they wait. Otherwise the compiler unpacks them early, into twice the
 * registers. */
__device__ __forceinline__ void stay_packed(uint4 &v)
{
    asm("" : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w));
}

/* Read 8 numbers at p, of which `left` exist (0 or less: none); missing ones are 0. WIDE: p is
 * aligned to 16 bytes, and left is a multiple of 8. */
template <bool WIDE> __device__ __forceinline__ uint4 get8(const bf16 *p, int left)
{
    if constexpr (WIDE) {
        return left > 0 ? *(const uint4 *)p : make_uint4(0, 0, 0, 0);
    } else {
        float f[8];
#pragma unroll
        for (int i = 0; i < 8; i++) f[i] = i < left ? wide(p[i]) : 0;
        return pack8(f);
    }
}

template <bool WIDE> __device__ __forceinline__ void put8(bf16 *p, uint4 v, int left)
{
    if constexpr (WIDE) {
        if (left > 0) *(uint4 *)p = v;
    } else {
        float f[8];
        unpack8(f, v);
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (i < left) p[i] = narrow(f[i]);
    }
}

/* ---- sums: one order, independent of timing ---- */

/* The sum over the group of `lanes` (a power of two) lanes that a lane belongs to. All of them get
 * it. */
__device__ __forceinline__ float warp_sum(float v, int lanes = 32)
{
#pragma unroll
    for (int d = 16; d; d >>= 1)
        if (d < lanes) v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}

/* a and b become their sums over the block. shared: 64 floats, which may be reused after the next
 * barrier. */
__device__ __forceinline__ void block_sums(float &a, float &b, float *shared)
{
    int warps = (blockDim.x + 31) >> 5, warp = threadIdx.x >> 5;
    a = warp_sum(a), b = warp_sum(b);
    if ((threadIdx.x & 31) == 0) shared[2 * warp] = a, shared[2 * warp + 1] = b;
    __syncthreads();
    a = b = 0;
    for (int i = 0; i < warps; i++) a += shared[2 * i], b += shared[2 * i + 1];
}

/* ---- functions ---- */

constexpr float LOG2E = 1.4426950408889634f, LN2 = 0.6931471805599453f;

__device__ __forceinline__ float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* 1 / (1 + exp(-z)); 0 for z below -88. */
__device__ __forceinline__ float sigmoid(float z)
{
    return __fdividef(1.0f, 1.0f + exp2_fast(-LOG2E * z));
}

/* silu(gate) up of two pairs, rounded between the two as in transformers. */
__device__ __forceinline__ unsigned swiglu2(unsigned gate, unsigned up)
{
    float a = low_half(gate), b = high_half(gate);
    return times2(pack2(a * sigmoid(a), b * sigmoid(b)), up);
}

#endif
