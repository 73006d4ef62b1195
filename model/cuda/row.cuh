/* Operations on a row or a head between the products. Kernels of the full pass (norm.cu,
 * pointwise.cu) and of a decoding step (residual.cu, fresh.cu) share them and get the same bits.
 * Therefore every sum has one order, and the code says explicitly whether a product is rounded
 * before it is added.
 *
 * cuda_norm_share (norm.h) chooses the threads of a norm: a team of lanes of a warp, or a block.
 * The loads of its threads are adjacent, and the next loads of a thread follow after those of all
 * threads. */
#ifndef ROW_CUH
#define ROW_CUH

#include "engine.cuh"

constexpr int TEAM_NUMBERS = 32,
              BLOCK_NUMBERS = 16; /* per thread, at most, for rows of the residual stream */

/* A load of x is 16 bytes, and a load of bf16 has as many numbers. Adjacent lanes read adjacent
 * memory of both. */
template <class X> struct Load;
template <> struct Load<bf16> {
    static constexpr int N = 8;
    typedef uint4 Halves;
};
template <> struct Load<float> {
    static constexpr int N = 4;
    typedef uint2 Halves;
};

/* Read `left` numbers, as get8 and put8 do. */
template <bool WIDE> __device__ __forceinline__ void get(uint4 &v, const bf16 *p, int left)
{
    v = get8<WIDE>(p, left);
}
template <bool WIDE> __device__ __forceinline__ void put(bf16 *p, uint4 v, int left)
{
    put8<WIDE>(p, v, left);
}

template <bool WIDE> __device__ __forceinline__ void get(uint4 &v, const float *p, int left)
{
    if constexpr (WIDE) {
        v = left > 0 ? *(const uint4 *)p : make_uint4(0, 0, 0, 0);
    } else {
        unsigned word[4];
#pragma unroll
        for (int i = 0; i < 4; i++) word[i] = i < left ? __float_as_uint(p[i]) : 0;
        v = make_uint4(word[0], word[1], word[2], word[3]);
    }
}

template <bool WIDE> __device__ __forceinline__ void get(uint2 &v, const bf16 *p, int left)
{
    if constexpr (WIDE) {
        v = left > 0 ? *(const uint2 *)p : make_uint2(0, 0);
    } else {
        float f[4];
#pragma unroll
        for (int i = 0; i < 4; i++) f[i] = i < left ? wide(p[i]) : 0;
        v = make_uint2(pack2(f[0], f[1]), pack2(f[2], f[3]));
    }
}

template <bool WIDE> __device__ __forceinline__ void put(bf16 *p, uint2 v, int left)
{
    if constexpr (WIDE) {
        if (left > 0) *(uint2 *)p = v;
    } else {
        float f[4] = {low_half(v.x), high_half(v.x), low_half(v.y), high_half(v.y)};
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < left) p[i] = narrow(f[i]);
    }
}

/* Number i of loaded words. */
template <class T> __device__ __forceinline__ float number(const unsigned *word, int i)
{
    if constexpr (sizeof(T) == 4)
        return __uint_as_float(word[i]);
    else
        return i % 2 ? high_half(word[i / 2]) : low_half(word[i / 2]);
}

/* The squares of one load, in order. Further loads, and then further lanes, are added to them. */
template <class X> __device__ __forceinline__ float squares(const uint4 &x)
{
    float sum = 0;
#pragma unroll
    for (int i = 0; i < Load<X>::N; i++) {
        float f = number<X>((const unsigned *)&x, i);
        sum = fmaf(f, f, sum);
    }
    return sum;
}

/* (mean(x^2) + eps)^-1/2 from the sum of all squares. */
__device__ __forceinline__ float inverse_root(float squares, int n, float eps)
{
    return rsqrtf(squares / n + eps);
}

template <class X>
__device__ __forceinline__ typename Load<X>::Halves scaled(uint4 x, typename Load<X>::Halves w,
                                                           float inverse)
{
    typename Load<X>::Halves y;
    stay_packed(x);
    const unsigned *from = (const unsigned *)&x, *by = (const unsigned *)&w;
    unsigned *to = (unsigned *)&y;
#pragma unroll
    for (int j = 0; j < Load<X>::N / 2; j++)
        to[j] = times2(
            pack2(number<X>(from, 2 * j) * inverse, number<X>(from, 2 * j + 1) * inverse), by[j]);
    return y;
}

/* One number of a rotated pair, x' = x cos - y sin and y' = y cos + x sin: x with y and -sin, or y
 * with x and sin. */
__device__ __forceinline__ float rotated(float own, float other, float cosine, float sine)
{
    return fmaf(own, cosine, __fmul_rn(other, sine));
}

#endif
