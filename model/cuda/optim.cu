/* AdamW in one pass over each tensor: weights, gradient and both moments are read and written once,
 * and the gradient becomes 0.
 *
 *    d = scale g;  m = b1 m + (1 - b1) d;  v = b2 v + (1 - b2) d^2;
 *    w = keep w - rate m / (root sqrt(v) + eps)
 *
 * with keep = 1 - lr decay, rate = lr / (1 - b1^t), root = (1 - b2^t)^-1/2. */
#include "engine.cuh"

struct Adam {
    float beta1, beta2, rest1, rest2, scale, keep, rate, root, eps;
};

/* Within 2^-22, like __fdividef. The exact functions are calls that spill registers. */
__device__ __forceinline__ float root_fast(float v)
{
    float y;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(v));
    return y;
}

__device__ __forceinline__ void adam(float &w, float g, float &m, float &v, const Adam &s)
{
    float d = g * s.scale;
    m = s.beta1 * m + s.rest1 * d;
    v = s.beta2 * v + s.rest2 * d * d;
    w = w * s.keep - __fdividef(s.rate * m, root_fast(v) * s.root + s.eps);
}

/* ---- fp32 masters and moments ---- */

constexpr int MASTER_VECTORS = 2; /* of 4 numbers, per thread */

extern "C" __global__ void __launch_bounds__(256)
    adamw_master(bf16 *p, float *master, float *g, float *m, float *v, size_t n, Adam s,
                 int aligned)
{
    constexpr int U = MASTER_VECTORS;
    size_t first = ((size_t)blockIdx.x * 256 * U + threadIdx.x) * 4;
    if (aligned && (size_t)(blockIdx.x + 1) * 256 * U * 4 <= n) {
        float4 w[U], d[U], a[U], b[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            size_t i = first + u * 1024;
            w[u] = *(float4 *)(master + i), d[u] = *(float4 *)(g + i), a[u] = *(float4 *)(m + i),
            b[u] = *(float4 *)(v + i);
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            size_t i = first + u * 1024;
            adam(w[u].x, d[u].x, a[u].x, b[u].x, s), adam(w[u].y, d[u].y, a[u].y, b[u].y, s);
            adam(w[u].z, d[u].z, a[u].z, b[u].z, s), adam(w[u].w, d[u].w, a[u].w, b[u].w, s);
            *(float4 *)(master + i) = w[u], *(float4 *)(m + i) = a[u], *(float4 *)(v + i) = b[u];
            *(float4 *)(g + i) = make_float4(0, 0, 0, 0);
            *(uint2 *)(p + i) = make_uint2(pack2(w[u].x, w[u].y), pack2(w[u].z, w[u].w));
        }
        return;
    }
    for (int u = 0; u < U; u++)
        for (size_t i = first + u * 1024; i < first + u * 1024 + 4 && i < n; i++) {
            adam(master[i], g[i], m[i], v[i], s);
            p[i] = narrow(master[i]);
            g[i] = 0;
        }
}

/* ---- lean: weights and moments are bf16 only, rounded up with the probability that preserves the
 * mean ---- */

/* 64 random bits of (seed, i): the finalizer of splitmix64. */
__device__ __forceinline__ unsigned long long random_bits(unsigned long long seed, size_t i)
{
    unsigned long long z = seed + (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

/* f rounded to bf16: away from zero if its lower 16 bits exceed 65535 - dice. Infinities and NaNs
 * are kept. */
__device__ __forceinline__ unsigned stochastic(float f, unsigned dice)
{
    unsigned bits = __float_as_uint(f);
    if ((bits & 0x7f800000u) != 0x7f800000u) bits += dice & 0xffffu;
    return bits >> 16;
}

__device__ __forceinline__ void adam_lean(unsigned &w, float g, unsigned &m, unsigned &v,
                                          const Adam &s, unsigned long long dice)
{
    float p = __uint_as_float(w << 16), a = __uint_as_float(m << 16), b = __uint_as_float(v << 16);
    adam(p, g, a, b, s);
    w = stochastic(p, (unsigned)dice), m = stochastic(a, (unsigned)(dice >> 16)),
    v = stochastic(b, (unsigned)(dice >> 32));
}

__device__ __forceinline__ void adam_lean_one(bf16 *p, float *g, bf16 *m, bf16 *v, size_t i,
                                              const Adam &s, unsigned long long seed)
{
    unsigned w = p[i].bits, a = m[i].bits, b = v[i].bits;
    adam_lean(w, g[i], a, b, s, random_bits(seed, i));
    p[i].bits = w, m[i].bits = a, v[i].bits = b;
    g[i] = 0;
}

/* A thread has 8 numbers. */
extern "C" __global__ void __launch_bounds__(256)
    adamw_lean(bf16 *p, float *g, bf16 *m, bf16 *v, size_t n, Adam s, unsigned long long seed,
               int aligned)
{
    size_t first = ((size_t)blockIdx.x * 256 + threadIdx.x) * 8;
    if (!aligned || first + 8 > n) {
        for (size_t i = first; i < first + 8 && i < n; i++) adam_lean_one(p, g, m, v, i, s, seed);
        return;
    }
    float4 low = *(float4 *)(g + first), high = *(float4 *)(g + first + 4);
    uint4 w = *(uint4 *)(p + first), a = *(uint4 *)(m + first), b = *(uint4 *)(v + first);
    float d[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
    unsigned ws[4] = {w.x, w.y, w.z, w.w}, as[4] = {a.x, a.y, a.z, a.w},
             bs[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int i = 0; i < 8; i += 2) {
        unsigned w0 = ws[i / 2] & 0xffffu, a0 = as[i / 2] & 0xffffu, b0 = bs[i / 2] & 0xffffu;
        unsigned w1 = ws[i / 2] >> 16, a1 = as[i / 2] >> 16, b1 = bs[i / 2] >> 16;
        adam_lean(w0, d[i], a0, b0, s, random_bits(seed, first + i));
        adam_lean(w1, d[i + 1], a1, b1, s, random_bits(seed, first + i + 1));
        ws[i / 2] = w0 | w1 << 16, as[i / 2] = a0 | a1 << 16, bs[i / 2] = b0 | b1 << 16;
    }
    *(uint4 *)(p + first) = make_uint4(ws[0], ws[1], ws[2], ws[3]);
    *(uint4 *)(m + first) = make_uint4(as[0], as[1], as[2], as[3]);
    *(uint4 *)(v + first) = make_uint4(bs[0], bs[1], bs[2], bs[3]);
    *(float4 *)(g + first) = *(float4 *)(g + first + 4) = make_float4(0, 0, 0, 0);
}
