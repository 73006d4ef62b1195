/* Elementwise kernels: sums of activations, SwiGLU, rotary embedding, token embeddings. They are
 * bound by memory: 16 bytes per load, and at least two loads in flight per thread. `aligned`: all
 * rows begin at multiples of 16 bytes and have a multiple of 8 numbers. */
#include "row.cuh"

/* ---- y += x ---- */

constexpr int ADD_VECTORS = 4; /* per thread */

extern "C" __global__ void __launch_bounds__(256) add(bf16 *y, const bf16 *x, size_t n, int aligned)
{
    constexpr int U = ADD_VECTORS;
    size_t first = ((size_t)blockIdx.x * blockDim.x * U + threadIdx.x) * 8,
           step = (size_t)blockDim.x * 8;
    size_t end = (size_t)(blockIdx.x + 1) * blockDim.x * U * 8;
    if (aligned && end <= n) {
        uint4 a[U], b[U];
#pragma unroll
        for (int u = 0; u < U; u++)
            a[u] = *(const uint4 *)(y + first + u * step),
            b[u] = *(const uint4 *)(x + first + u * step);
#pragma unroll
        for (int u = 0; u < U; u++) {
            float p[8], q[8];
            unpack8(p, a[u]), unpack8(q, b[u]);
#pragma unroll
            for (int i = 0; i < 8; i++) p[i] += q[i];
            *(uint4 *)(y + first + u * step) = pack8(p);
        }
        return;
    }
    for (int u = 0; u < U; u++)
        for (size_t i = first + u * step; i < first + u * step + 8 && i < n; i++)
            y[i] = narrow(wide(y[i]) + wide(x[i]));
}

/* ---- SwiGLU: a block has a piece of one row ---- */

constexpr int GLU_VECTORS = 2;

template <bool WIDE>
__device__ __forceinline__ void swiglu_piece(bf16 *act, const bf16 *gate_up, int ff)
{
    constexpr int U = GLU_VECTORS;
    const bf16 *gate = gate_up + (size_t)blockIdx.x * 2 * ff;
    bf16 *out = act + (size_t)blockIdx.x * ff;
    int first = (blockIdx.y * U * blockDim.x + threadIdx.x) * 8, step = blockDim.x * 8;
    uint4 g[U], v[U];
#pragma unroll
    for (int u = 0; u < U; u++) {
        int at = first + u * step;
        g[u] = get8<WIDE>(gate + at, ff - at), v[u] = get8<WIDE>(gate + ff + at, ff - at);
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
        uint4 y = make_uint4(swiglu2(g[u].x, v[u].x), swiglu2(g[u].y, v[u].y),
                             swiglu2(g[u].z, v[u].z), swiglu2(g[u].w, v[u].w));
        put8<WIDE>(out + first + u * step, y, ff - first - u * step);
    }
}

extern "C" __global__ void __launch_bounds__(256)
    swiglu(bf16 *act, const bf16 *gate_up, int ff, int aligned)
{
    if (aligned)
        swiglu_piece<true>(act, gate_up, ff);
    else
        swiglu_piece<false>(act, gate_up, ff);
}

/* dup = d silu(gate); dgate = d up s (1 + gate (1 - s)), s = sigmoid(gate) */
template <bool WIDE>
__device__ __forceinline__ void swiglu_grad_piece(bf16 *dgate_up, const bf16 *dact,
                                                  const bf16 *gate_up, int ff)
{
    constexpr int U = GLU_VECTORS;
    size_t row = (size_t)blockIdx.x * 2 * ff;
    const bf16 *gate = gate_up + row, *dy = dact + (size_t)blockIdx.x * ff;
    bf16 *dgate = dgate_up + row;
    int first = (blockIdx.y * U * blockDim.x + threadIdx.x) * 8, step = blockDim.x * 8;
    uint4 g[U], v[U], d[U];
#pragma unroll
    for (int u = 0; u < U; u++) {
        int at = first + u * step;
        g[u] = get8<WIDE>(gate + at, ff - at), v[u] = get8<WIDE>(gate + ff + at, ff - at),
        d[u] = get8<WIDE>(dy + at, ff - at);
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
        float z[8], up[8], down[8];
        unpack8(z, g[u]), unpack8(up, v[u]), unpack8(down, d[u]);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            float s = sigmoid(z[i]), silu = z[i] * s;
            z[i] = down[i] * up[i] * (s + silu * (1.0f - s));
            up[i] = down[i] * silu;
        }
        int at = first + u * step;
        put8<WIDE>(dgate + at, pack8(z), ff - at);
        put8<WIDE>(dgate + ff + at, pack8(up), ff - at);
    }
}

extern "C" __global__ void __launch_bounds__(256)
    swiglu_grad(bf16 *dgate_up, const bf16 *dact, const bf16 *gate_up, int ff, int aligned)
{
    if (aligned)
        swiglu_grad_piece<true>(dgate_up, dact, gate_up, ff);
    else
        swiglu_grad_piece<false>(dgate_up, dact, gate_up, ff);
}

/* ---- rotary embedding ---- */

/* W adjacent numbers of half a head, in one access. */
template <int W> struct Few;
template <> struct Few<8> {
    typedef uint4 Bits;
};
template <> struct Few<4> {
    typedef uint2 Bits;
};
template <> struct Few<2> {
    typedef unsigned Bits;
};

template <int W> __device__ __forceinline__ void unpack_few(float (&f)[W], typename Few<W>::Bits v)
{
    const unsigned *words = (const unsigned *)&v;
#pragma unroll
    for (int i = 0; i < W; i += 2)
        f[i] = low_half(words[i / 2]), f[i + 1] = high_half(words[i / 2]);
}

template <int W> __device__ __forceinline__ typename Few<W>::Bits pack_few(const float (&f)[W])
{
    typename Few<W>::Bits v;
    unsigned *words = (unsigned *)&v;
#pragma unroll
    for (int i = 0; i < W; i += 2) words[i / 2] = pack2(f[i], f[i + 1]);
    return v;
}

constexpr int ROPE_HEADS = 4; /* per thread, which reads its cosines and sines once for them */

/* A thread rotates the same W pairs of ROPE_HEADS heads of a row. Its heads are `apart` heads
 * apart. */
template <int W>
__device__ __forceinline__ void rope_heads(bf16 *qkv, const int *pos, const float *cosines,
                                           const float *sines, int rows, int heads, int ld, int dim,
                                           float sign)
{
    typedef typename Few<W>::Bits Bits;
    constexpr int H = ROPE_HEADS;
    int half = dim / 2, lanes = half / W, apart = (heads + H - 1) / H, threads = lanes * apart;
    unsigned item = blockIdx.x * blockDim.x + threadIdx.x;
    size_t row = item / threads;
    if (row >= rows) return;
    int rest = item % threads, first = rest / lanes, at = (rest - first * lanes) * W;
    bf16 *base = qkv + row * ld + (size_t)first * dim + at;
    Bits a[H], b[H];
#pragma unroll
    for (int h = 0; h < H; h++)
        if (first + h * apart < heads) {
            a[h] = *(const Bits *)(base + (size_t)h * apart * dim);
            b[h] = *(const Bits *)(base + (size_t)h * apart * dim + half);
        }
    float c[W], s[W];
    size_t angle = (size_t)pos[row] * half + at;
#pragma unroll
    for (int i = 0; i < W; i += 2) {
        float2 cs = *(const float2 *)(cosines + angle + i),
               sn = *(const float2 *)(sines + angle + i);
        c[i] = cs.x, c[i + 1] = cs.y, s[i] = sn.x * sign, s[i + 1] = sn.y * sign;
    }
#pragma unroll
    for (int h = 0; h < H; h++)
        if (first + h * apart < heads) {
            float p[W], q[W];
            unpack_few<W>(p, a[h]), unpack_few<W>(q, b[h]);
#pragma unroll
            for (int i = 0; i < W; i++) {
                float x = p[i], y = q[i];
                p[i] = rotated(x, y, c[i], -s[i]);
                q[i] = rotated(y, x, c[i], s[i]);
            }
            *(Bits *)(base + (size_t)h * apart * dim) = pack_few<W>(p);
            *(Bits *)(base + (size_t)h * apart * dim + half) = pack_few<W>(q);
        }
}

#define ROPE(W)                                                                                \
    extern "C" __global__ void __launch_bounds__(256)                                          \
        rope##W(bf16 *qkv, const int *pos, const float *cosines, const float *sines, int rows, \
                int heads, int ld, int dim, float sign)                                        \
    {                                                                                          \
        rope_heads<W>(qkv, pos, cosines, sines, rows, heads, ld, dim, sign);                   \
    }
ROPE(8)
ROPE(4)
ROPE(2)

/* ---- token embeddings: a block converts a piece of a row to float, four numbers per thread
 * (aligned: n is a multiple of 4) ---- */

extern "C" __global__ void __launch_bounds__(256)
    embed(float *x, const bf16 *table, const int *ids, int n, int aligned)
{
    int at = (blockIdx.y * blockDim.x + threadIdx.x) * 4;
    float *to = x + (size_t)blockIdx.x * n + at;
    const bf16 *from = table + (size_t)ids[blockIdx.x] * n + at;
    if (aligned && at < n) {
        uint2 v = *(const uint2 *)from;
        *(float4 *)to = make_float4(low_half(v.x), high_half(v.x), low_half(v.y), high_half(v.y));
    } else {
        for (int i = 0; i < 4 && at + i < n; i++) to[i] = wide(from[i]);
    }
}
