/* q, k and v of the new tokens of a decoding step, from the sums of their product: bias, norms of q
 * and k, rotation, and storing the new key and value in their page. They equal the full pass
 * (product, norm.cu and pointwise.cu) bit for bit. */
#include "decode.cuh"
#include "row.cuh"

constexpr int THREADS = 128;

struct Fresh {
    bf16 *q; /* [rows][heads * dim] */
    /* [planes][rows][(heads + 2 kv_heads) * dim]: the adapter's if planes is 2, then the main ones. */
    const float *sums;
    const bf16 *bias, *q_norm, *k_norm; /* NULL if absent */
    const float *cosines, *sines;
    int planes, rows, heads, layer;
    float eps;
};

/* Read 8 of the sums; missing ones are 0. */
__device__ __forceinline__ void get_sums(float (&v)[8], const float *p, int left)
{
    uint4 low, high;
    get<true>(low, p, left), get<true>(high, p + 4, left);
    const unsigned *words[2] = {(const unsigned *)&low, (const unsigned *)&high};
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = __uint_as_float(words[i / 4][i % 4]);
}

/* The cosines or sines of 8 numbers of a head, whose halves begin at multiples of 4. */
__device__ __forceinline__ void get_angles(float (&v)[8], const float *p, int at, int half)
{
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
        float4 f = *(const float4 *)(p + (at + i < half ? at + i : at + i - half));
        v[i] = f.x, v[i + 1] = f.y, v[i + 2] = f.z, v[i + 3] = f.w;
    }
}

/* Round as the full pass does: the adapter's part, its sum with the bias, the product, and the sum
 * of these two. */
__device__ __forceinline__ uint4 joined(const Fresh &f, const float *sums, size_t plane, uint4 bias,
                                        int left)
{
    float main[8], adapter[8], b[8];
    unpack8(b, bias);
    if (f.planes > 1) {
        get_sums(adapter, sums, left);
        get_sums(main, sums + plane, left);
#pragma unroll
        for (int i = 0; i < 8; i++) b[i] = rounded(rounded(adapter[i]) + b[i]);
    } else
        get_sums(main, sums, left);
#pragma unroll
    for (int i = 0; i < 8; i++) main[i] = rounded(main[i]) + b[i];
    return pack8(main);
}

/* Rotate a head. The partners of a lane's numbers, half a head away, are two numbers per word in up
 * to two other lanes of its team. */
__device__ __forceinline__ uint4 turned_head(uint4 head, const float (&cosine)[8],
                                             const float (&sine)[8], int at, int half, int lanes)
{
    const unsigned *own = (const unsigned *)&head;
    uint4 result;
    unsigned *out = (unsigned *)&result;
    bool across =
        half & 4; /* numbers 0..3 of a lane have their partners in numbers 4..7 of another lane */
#pragma unroll
    for (int w = 0; w < 4; w++) {
        int j = at + 2 * w;
        bool lower = j < half;
        unsigned other = __shfl_sync(0xffffffffu, across ? own[w ^ 2] : own[w],
                                     (lower ? j + half : j - half) / 8, lanes);
        float s = lower ? -sine[2 * w] : sine[2 * w],
              t = lower ? -sine[2 * w + 1] : sine[2 * w + 1];
        out[w] = pack2(rotated(low_half(own[w]), low_half(other), cosine[2 * w], s),
                       rotated(high_half(own[w]), high_half(other), cosine[2 * w + 1], t));
    }
    return result;
}

/* A team of lanes of one warp has one head of one row, 8 numbers per lane. Blocks: (heads / teams,
 * rows). Data that the previous kernel does not write is read before it ends. */
extern "C" __global__ void __launch_bounds__(THREADS)
    fresh_heads(Fresh f, Rows rows, Pages pages, int lanes)
{
    int at = (threadIdx.x & (lanes - 1)) * 8, head = (blockIdx.x * THREADS + threadIdx.x) / lanes,
        row = blockIdx.y;
    int dim = pages.dim, half = dim / 2, all = f.heads + 2 * pages.kv_heads, pos = rows.pos[row];
    next_may_start();
    if (pos < 0) return previous_done();
    int kind = head < f.heads                    ? 0
               : head < f.heads + pages.kv_heads ? 1
                                                 : 2,
        left = head < all ? dim - at : 0;
    const bf16 *norm = kind == 0 ? f.q_norm : kind == 1 ? f.k_norm : nullptr;
    bool turns = kind < 2 && left > 0;
    float cosine[8] = {}, sine[8] = {};
    if (turns) {
        get_angles(cosine, f.cosines + (size_t)pos * half, at, half);
        get_angles(sine, f.sines + (size_t)pos * half, at, half);
    }
    uint4 bias = get8<true>(f.bias + head * dim + at, f.bias ? left : 0);
    uint4 weight = get8<true>(norm + at, norm ? left : 0);
    int page = kind ? rows.table[(size_t)row * rows.ld + pos / PAGE] : 0;
    previous_done();
    uint4 v = joined(f, f.sums + ((size_t)row * all + head) * dim + at, (size_t)f.rows * all * dim,
                     bias, left);
    if (f.q_norm || f.k_norm) { /* all lanes of a warp reach the sum, for heads of any kind */
        uint4 normed =
            scaled<bf16>(v, weight, inverse_root(warp_sum(squares<bf16>(v), lanes), dim, f.eps));
        if (norm) v = normed;
    }
    uint4 after = turned_head(v, cosine, sine, at, half, lanes);
    if (left <= 0) return;
    int kv = kind == 1 ? head - f.heads : head - f.heads - pages.kv_heads;
    bf16 *to = kind ? page_row(pages, page, f.layer, kind - 1, kv, pos % PAGE)
                    : f.q + ((size_t)row * f.heads + head) * dim;
    *(uint4 *)(to + at) = turns ? after : v;
}
