/* Log-probabilities over the vocabulary and their gradient, from fp32 logits. A block has a row and
 * reads each logit once. `aligned`: all rows begin at multiples of 16 bytes and have a multiple of
 * 4 logits. */
#include "engine.cuh"

constexpr int VECTORS = 4;       /* of 4 logits, in flight per thread */
constexpr float LOWEST = -1e38f; /* below any logit, but finite: differences are numbers */

/* Read 4 logits p[0..left); missing ones are minus infinity. */
template <bool WIDE> __device__ __forceinline__ float4 get4(const float *p, int left)
{
    float fill = __uint_as_float(0xff800000u);
    if constexpr (WIDE) {
        return left > 0 ? *(const float4 *)p : make_float4(fill, fill, fill, fill);
    } else {
        return make_float4(left > 0 ? p[0] : fill, left > 1 ? p[1] : fill, left > 2 ? p[2] : fill,
                           left > 3 ? p[3] : fill);
    }
}

/* ---- forward ---- */

__device__ __forceinline__ float exp_fast(float x)
{
    return exp2_fast(x * LOG2E);
}

/* A sum of exp(z - top). */
struct Tail {
    float top, sum;
};

__device__ __forceinline__ Tail join(Tail a, Tail b)
{
    float top = fmaxf(a.top, b.top);
    return {top, a.sum * exp_fast(a.top - top) + b.sum * exp_fast(b.top - top)};
}

__device__ __forceinline__ Tail warp_join(Tail t)
{
#pragma unroll
    for (int d = 16; d; d >>= 1)
        t = join(t,
                 {__shfl_xor_sync(0xffffffffu, t.top, d), __shfl_xor_sync(0xffffffffu, t.sum, d)});
    return t;
}

template <bool WIDE> __device__ __forceinline__ Tail row_tail(const float *z, int vocab)
{
    constexpr int V = VECTORS;
    Tail t = {LOWEST, 0};
    int step = blockDim.x * 4;
    for (int at = threadIdx.x * 4; at < vocab; at += V * step) {
        float4 f[V];
        float top = LOWEST;
#pragma unroll
        for (int k = 0; k < V; k++) f[k] = get4<WIDE>(z + at + k * step, vocab - at - k * step);
#pragma unroll
        for (int k = 0; k < V; k++)
            top = fmaxf(top, fmaxf(fmaxf(f[k].x, f[k].y), fmaxf(f[k].z, f[k].w)));
        top = fmaxf(t.top, top);
        t.sum *= exp_fast(t.top - top);
        t.top = top;
#pragma unroll
        for (int k = 0; k < V; k++)
            t.sum += (exp_fast(f[k].x - top) + exp_fast(f[k].y - top)) +
                     (exp_fast(f[k].z - top) + exp_fast(f[k].w - top));
    }
    return t;
}

extern "C" __global__ void __launch_bounds__(1024)
    cross_entropy(float *logp, float *lse, const float *logits, const int *target, int vocab,
                  int aligned)
{
    __shared__ Tail tails[32];
    const float *z = logits + (size_t)blockIdx.x * vocab;
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, id = target[blockIdx.x];
    Tail t = warp_join(aligned ? row_tail<true>(z, vocab) : row_tail<false>(z, vocab));
    if (lane == 0) tails[warp] = t;
    __syncthreads();
    if (warp) return;
    t = warp_join(lane < (int)blockDim.x / 32 ? tails[lane] : Tail{LOWEST, 0});
    if (lane) return;
    float tail = logf(t.sum);
    lse[blockIdx.x] = t.top + tail;
    logp[blockIdx.x] = id < 0 ? 0 : (z[id] - t.top) - tail;
}

/* ---- gradient ---- */

/* dlogits of 4 logits other than the target. */
__device__ __forceinline__ uint2 slope(float4 z, float lse, float weight)
{
    return make_uint2(pack2(-weight * exp_fast(z.x - lse), -weight * exp_fast(z.y - lse)),
                      pack2(-weight * exp_fast(z.z - lse), -weight * exp_fast(z.w - lse)));
}

template <bool WIDE> __device__ __forceinline__ void put4(bf16 *p, uint2 v, int left)
{
    if constexpr (WIDE) {
        if (left > 0) *(uint2 *)p = v;
    } else {
        unsigned words[2] = {v.x, v.y};
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (i < left) p[i] = bf16{(unsigned short)(words[i / 2] >> 16 * (i & 1))};
    }
}

/* dlogits overwrite the logits of the row: number i goes to the place of logit i/2. The block reads
 * rounds of as many logits as it holds in registers. After the barrier that follows the reads of
 * round r, rounds 0 to r are in registers or finished, so rounds up to 2r + 1 may be written. The
 * next barrier is therefore in round 2r + 2. */
template <bool WIDE>
__device__ __forceinline__ void row_grad(bf16 *d, const float *z, float lse, int id, float weight,
                                         int vocab)
{
    constexpr int V = VECTORS;
    int step = blockDim.x * 4, due = 0;
    for (int round = 0; round * V * step < vocab; round++) {
        int at = round * V * step + threadIdx.x * 4;
        float4 f[V];
#pragma unroll
        for (int k = 0; k < V; k++) f[k] = get4<WIDE>(z + at + k * step, vocab - at - k * step);
        if (round == due) {
            __syncthreads();
            due = 2 * round + 2;
        }
#pragma unroll
        for (int k = 0; k < V; k++) {
            int i = at + k * step;
            uint2 v = slope(f[k], lse, weight);
            if (id >= i && id < i + 4) {
                float own = id == i ? f[k].x : id == i + 1 ? f[k].y : id == i + 2 ? f[k].z : f[k].w;
                unsigned bits = narrow(weight * (1 - exp_fast(own - lse))).bits;
                unsigned &word = id - i < 2 ? v.x : v.y;
                word = id - i & 1 ? (word & 0xffffu) | bits << 16 : (word & 0xffff0000u) | bits;
            }
            put4<WIDE>(d + i, v, vocab - i);
        }
    }
}

extern "C" __global__ void __launch_bounds__(1024)
    cross_entropy_grad(bf16 *dlogits, const float *logits, const float *lse, const int *target,
                       const float *weight, int vocab, int aligned)
{
    size_t row = blockIdx.x;
    int id = target[row];
    float w = id < 0 ? 0 : weight[row];
    bf16 *d = dlogits + row * vocab * 2;
    const float *z = logits + row * vocab;
    if (w == 0) {
        if (aligned)
            for (int i = threadIdx.x * 4; i < vocab; i += blockDim.x * 4)
                *(uint2 *)(d + i) = make_uint2(0, 0);
        else
            for (int i = threadIdx.x; i < vocab; i += blockDim.x) d[i] = bf16{0};
        return;
    }
    if (aligned)
        row_grad<true>(d, z, lse[row], id, w, vocab);
    else
        row_grad<false>(d, z, lse[row], id, w, vocab);
}
