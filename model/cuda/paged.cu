/* Attention of one new token per row over pages of keys and values, and what comes before it: bias, norms of q and k, rotation,
 * the new key and value into their page. Each row's keys and values are read once for all query heads of their group; a long
 * context is cut into splits, by its own length alone, that are added in their order. */
#include "decode.cuh"

constexpr int TOKENS = 64;     /* of a tile: two pages */
constexpr int SPLITS_MAX = 32;
constexpr int WARPS = 4;

/* Who the rows are: position of the new token (-1: an idle row), and the pages of each row's context. */
struct Rows {
    const int *pos, *table;
    int ld;                    /* pages of a row of the table */
};

/* ---- q, k and v of the new tokens ---- */

struct Fresh {
    bf16 *q;                   /* [rows][heads * dim] */
    const float *sums;         /* [splits][rows][(heads + 2 kv_heads) * dim] */
    const bf16 *bias, *q_norm, *k_norm; /* or NULL */
    const float *cosines, *sines;
    int splits, rows, heads, layer;
    float eps;
};

/* A warp has one head of one row: lane i its pairs i, i + 32, ... of numbers dim / 2 apart. Blocks: (heads / WARPS, rows). */
extern "C" __global__ void __launch_bounds__(32 * WARPS) fresh_heads(Fresh f, Rows rows, Pages pages)
{
    constexpr int PAIRS = 4;
    int lane = threadIdx.x & 31, head = blockIdx.x * WARPS + (threadIdx.x >> 5), row = blockIdx.y;
    int dim = pages.dim, half = dim / 2, all = f.heads + 2 * pages.kv_heads, pos = rows.pos[row];
    next_may_start();
    if (head >= all || pos < 0) return previous_done();
    int kind = head < f.heads ? 0 : head < f.heads + pages.kv_heads ? 1 : 2;
    const bf16 *norm = kind == 0 ? f.q_norm : kind == 1 ? f.k_norm : nullptr;
    size_t plane = (size_t)f.rows * all * dim, at = ((size_t)row * all + head) * dim;
    float a[PAIRS], b[PAIRS], cosine[PAIRS], sine[PAIRS], squares = 0;
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        int j = lane + 32 * i;
        bool turned = j < half && kind < 2;
        a[i] = j < half && f.bias ? wide(f.bias[head * dim + j]) : 0;
        b[i] = j < half && f.bias ? wide(f.bias[head * dim + half + j]) : 0;
        cosine[i] = turned ? f.cosines[(size_t)pos * half + j] : 1;
        sine[i] = turned ? f.sines[(size_t)pos * half + j] : 0;
    }
    previous_done();
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        int j = lane + 32 * i;
        if (j >= half) continue;
        float p = 0, q = 0;
#pragma unroll 4
        for (int s = 0; s < f.splits; s++) p += f.sums[s * plane + at + j], q += f.sums[s * plane + at + half + j];
        a[i] = rounded(p + a[i]), b[i] = rounded(q + b[i]);
        squares += a[i] * a[i] + b[i] * b[i];
    }
    if (norm) {
        float scale = rsqrtf(warp_sum(squares) / (float)dim + f.eps);
#pragma unroll
        for (int i = 0; i < PAIRS; i++) {
            int j = lane + 32 * i;
            if (j >= half) continue;
            a[i] = rounded(rounded(a[i] * scale) * wide(norm[j])), b[i] = rounded(rounded(b[i] * scale) * wide(norm[half + j]));
        }
    }
    int page = kind ? rows.table[(size_t)row * rows.ld + pos / PAGE] : 0;
    int kv = kind == 1 ? head - f.heads : head - f.heads - pages.kv_heads;
    bf16 *to = kind ? page_row(pages, page, f.layer, kind - 1, kv, pos % PAGE) : f.q + ((size_t)row * f.heads + head) * dim;
#pragma unroll
    for (int i = 0; i < PAIRS; i++) {
        int j = lane + 32 * i;
        if (j >= half) continue;
        to[j] = narrow(a[i] * cosine[i] - b[i] * sine[i]);
        to[half + j] = narrow(b[i] * cosine[i] + a[i] * sine[i]);
    }
}

/* Keys and values of a prompt, rows of q|k|v, to the pages of a table. A block has a row. */
extern "C" __global__ void __launch_bounds__(256) store_prompt(Pages pages, const bf16 *qkv, const int *table, int heads, int layer)
{
    int token = blockIdx.x, n = pages.kv_heads * pages.dim;
    const bf16 *k = qkv + ((size_t)token * (heads + 2 * pages.kv_heads) + heads) * pages.dim;
    for (int i = threadIdx.x * 8; i < 2 * n; i += blockDim.x * 8) {
        int values = i >= n, at = i - values * n, head = at / pages.dim;
        bf16 *to = page_row(pages, table[token / PAGE], layer, values, head, token % PAGE) + at % pages.dim;
        *(uint4 *)to = *(const uint4 *)(k + i);
    }
}

/* ---- attention ---- */

struct Attend {
    const bf16 *q;
    float *out, *stats;        /* [rows][heads][SPLITS_MAX][dim] and [..][2]: unnormalised, its maximum and sum */
    int heads, layer;
    float scale;               /* dim^-0.5 log2(e) */
};

/* Tiles of a split: of the row's own length. */
__device__ __forceinline__ int tiles_of_split(int tiles) { return (tiles + SPLITS_MAX - 1) / SPLITS_MAX; }

/* A tile of keys or values, tokens `first` and on, to shared rows of `ld`; zeros past the row's end and past dim. P: pieces
 * of 16 bytes, a power of two, dim / 8 rounded up at least. */
template <int P> __device__ __forceinline__ void load_tile(bf16 *to, int ld, const Pages &pages, const int *table, int layer,
                                                           int values, int head, int first, int len)
{
    int padded = (pages.dim + 15) / 16 * 2;
#pragma unroll 4
    for (int i = threadIdx.x; i < TOKENS * P; i += 32 * WARPS) {
        int token = i / P, piece = i % P;
        if (piece >= padded) continue;
        bool there = first + token < len && piece * 8 < pages.dim;
        const bf16 *from = pages.data;
        if (there) from = page_row(pages, table[(first + token) / PAGE], layer, values, head, (first + token) % PAGE) + piece * 8;
        copy16(to + token * ld + piece * 8, from, there);
    }
}

/* Scores of a warp's 16 tokens: c[j] has tokens 8 j + 2 t and the next, of query heads g and g + 8. */
template <int D16> __device__ __forceinline__ void scores(float (&c)[2][4], const bf16 *q, const bf16 *k, int ld, int dim)
{
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const bf16 *q_row = q + (lane % 16) * ld + lane / 16 * 8;
    const bf16 *k_row = k + (warp * 16 + lane / 16 * 8 + lane % 8) * ld + lane / 8 % 2 * 8;
#pragma unroll
    for (int j = 0; j < 2; j++) c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
#pragma unroll
    for (int s = 0; s < D16; s++) {
        if (s * 16 >= dim) break;
        unsigned a[4], b[4];
        load_matrices<false>(a, q_row + s * 16);
        load_matrices<false>(b, k_row + s * 16);
        mma(c[0], a[0], a[1], a[2], a[3], b[0], b[1]);
        mma(c[1], a[0], a[1], a[2], a[3], b[2], b[3]);
    }
}

/* o += p v for a warp's columns: pairs of 8, 16 (warp + WARPS i). */
template <int OWN> __device__ __forceinline__ void values(float (&o)[OWN][2][4], const bf16 *p, const bf16 *v, int ld, int dim)
{
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll
    for (int s = 0; s < TOKENS / 16; s++) {
        unsigned a[4], b[4];
        load_matrices<false>(a, p + (lane % 16) * (TOKENS + 8) + s * 16 + lane / 16 * 8);
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            int column = 16 * (warp + WARPS * i);
            if (column >= dim) break;
            load_matrices<true>(b, v + (s * 16 + lane % 16) * ld + column + lane / 16 * 8);
            mma(o[i][0], a[0], a[1], a[2], a[3], b[0], b[1]);
            mma(o[i][1], a[0], a[1], a[2], a[3], b[2], b[3]);
        }
    }
}

/* What runs along the tiles for query heads g and g + 8 of a lane. */
struct Running {
    float top[2], sum[2];
};

/* Scores become weights, powers of 2, in shared memory as bf16; and what the sums so far are to be multiplied by. They are
 * relative to a whole number, so that what bf16 makes of a weight does not depend on it: the full pass rounds them alike.
 * `edge`: [2][WARPS][16] floats. */
__device__ __forceinline__ void soften(float (&c)[2][4], Running &r, float (&shrink)[2], bf16 *p, float *edge, float scale,
                                       int left)
{
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
    float top[2] = {-INFINITE, -INFINITE};
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            bool there = warp * 16 + 8 * j + 2 * t + (e & 1) < left;
            c[j][e] = there ? c[j][e] * scale : -INFINITE;
            top[e >> 1] = fmaxf(top[e >> 1], c[j][e]);
        }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        top[h] = fmaxf(top[h], __shfl_xor_sync(0xffffffffu, top[h], 1));
        top[h] = fmaxf(top[h], __shfl_xor_sync(0xffffffffu, top[h], 2));
        if (t == 0) edge[warp * 16 + g + 8 * h] = top[h];
    }
    __syncthreads();
    float sum[2] = {0, 0};
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float now = r.top[h];
#pragma unroll
        for (int w = 0; w < WARPS; w++) now = fmaxf(now, ceilf(edge[w * 16 + g + 8 * h])); /* the first token is there: finite */
        shrink[h] = exp2_fast(r.top[h] - now);
        r.top[h] = now;
    }
#pragma unroll
    for (int j = 0; j < 2; j++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float a = exp2_fast(c[j][2 * h] - r.top[h]), b = exp2_fast(c[j][2 * h + 1] - r.top[h]);
            sum[h] += a + b;
            *(unsigned *)(p + (g + 8 * h) * (TOKENS + 8) + warp * 16 + 8 * j + 2 * t) = pack2(a, b);
        }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], 1);
        sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], 2);
        if (t == 0) edge[(WARPS + warp) * 16 + g + 8 * h] = sum[h];
    }
    __syncthreads();
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float all = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) all += edge[(WARPS + w) * 16 + g + 8 * h];
        r.sum[h] = r.sum[h] * shrink[h] + all;
    }
}

template <int OWN>
__device__ __forceinline__ void put_part(const Attend &a, const float (&o)[OWN][2][4], const Running &r, int group, int dim)
{
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        if (g + 8 * h >= group) continue;
        size_t at = ((size_t)blockIdx.z * a.heads + blockIdx.y * group + g + 8 * h) * SPLITS_MAX + blockIdx.x;
        if (warp == 0 && t == 0) *(float2 *)(a.stats + 2 * at) = make_float2(r.top[h], r.sum[h]);
#pragma unroll
        for (int i = 0; i < OWN; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
                int column = 16 * (warp + WARPS * i) + 8 * j + 2 * t;
                if (column < dim) *(float2 *)(a.out + at * dim + column) = make_float2(o[i][j][2 * h], o[i][j][2 * h + 1]);
            }
    }
}

/* D: dim at most. Blocks: (splits, kv heads, rows). Shared memory: 16 + 2 TOKENS rows of dim padded to 16 and 8 more, 16 of
 * TOKENS + 8, all bf16, and 2 * 16 * WARPS floats. */
template <int D> __device__ __forceinline__ void paged_attention(const Attend &a, const Rows &rows, const Pages &pages)
{
    extern __shared__ uint4 room[];
    constexpr int P = D / 8, OWN = D / (16 * WARPS);
    int dim = pages.dim, padded = (dim + 15) / 16 * 16, ld = padded + 8, group = a.heads / pages.kv_heads;
    bf16 *q = (bf16 *)room, *k = q + 16 * ld, *v = k + TOKENS * ld, *p = v + TOKENS * ld;
    float *edge = (float *)(p + 16 * (TOKENS + 8));
    int row = blockIdx.z, head = blockIdx.y, len = rows.pos[row] + 1, tiles = (len + TOKENS - 1) / TOKENS;
    const int *table = rows.table + (size_t)row * rows.ld;
    int each = tiles_of_split(tiles), first = blockIdx.x * each, last = min(tiles, first + each);
    next_may_start();
    if (first >= last) return previous_done();
    bool early = (first + 1) * TOKENS < len; /* all but the newest token was there before this step */
    if (!early) previous_done();
    load_tile<P>(k, ld, pages, table, a.layer, 0, head, first * TOKENS, len);
    copies_commit();
    load_tile<P>(v, ld, pages, table, a.layer, 1, head, first * TOKENS, len);
    copies_commit();
    if (early) previous_done();
    const bf16 *mine = a.q + ((size_t)row * a.heads + head * group) * dim;
    for (int i = threadIdx.x; i < 16 * padded / 8; i += 32 * WARPS) {
        int h = i / (padded / 8), at = i % (padded / 8) * 8;
        bool there = h < group && at < dim;
        *(uint4 *)(q + h * ld + at) = there ? *(const uint4 *)(mine + h * dim + at) : make_uint4(0, 0, 0, 0);
    }
    float o[OWN][2][4] = {};
    Running run = {{-INFINITE, -INFINITE}, {0, 0}};
    for (int tile = first; tile < last; tile++) {
        float c[2][4], shrink[2];
        copies_wait<1>();
        __syncthreads();
        scores<D / 16>(c, q, k, ld, dim);
        soften(c, run, shrink, p, edge, a.scale, len - tile * TOKENS);
        if (tile + 1 < last) load_tile<P>(k, ld, pages, table, a.layer, 0, head, (tile + 1) * TOKENS, len);
        copies_commit();
        copies_wait<1>();
        __syncthreads();
#pragma unroll
        for (int i = 0; i < OWN; i++)
#pragma unroll
            for (int j = 0; j < 2; j++)
#pragma unroll
                for (int e = 0; e < 4; e++) o[i][j][e] *= shrink[e >> 1];
        values<OWN>(o, p, v, ld, dim);
        __syncthreads();
        if (tile + 1 < last) load_tile<P>(v, ld, pages, table, a.layer, 1, head, (tile + 1) * TOKENS, len);
        copies_commit();
    }
    put_part<OWN>(a, o, run, group, dim);
}

extern "C" __global__ void __launch_bounds__(128) paged_attention64(Attend a, Rows rows, Pages pages)
{
    paged_attention<64>(a, rows, pages);
}
extern "C" __global__ void __launch_bounds__(128) paged_attention128(Attend a, Rows rows, Pages pages)
{
    paged_attention<128>(a, rows, pages);
}
extern "C" __global__ void __launch_bounds__(128) paged_attention256(Attend a, Rows rows, Pages pages)
{
    paged_attention<256>(a, rows, pages);
}

/* The splits of a head, in their order. Blocks: (heads, rows), a thread for each number. */
extern "C" __global__ void __launch_bounds__(256) paged_sum(bf16 *out, Attend a, const int *pos, int dim)
{
    int head = blockIdx.x, row = blockIdx.y, tiles = (pos[row] + TOKENS) / TOKENS;
    next_may_start();
    previous_done();
    if (pos[row] < 0 || threadIdx.x >= dim) return;
    int each = tiles_of_split(tiles), splits = (tiles + each - 1) / each;
    size_t at = ((size_t)row * a.heads + head) * SPLITS_MAX;
    const float2 *stats = (const float2 *)a.stats + at;
    float top = -INFINITE, sum = 0, v = 0;
    for (int s = 0; s < splits; s++) top = fmaxf(top, stats[s].x);
#pragma unroll 4
    for (int s = 0; s < splits; s++) {
        float share = exp2_fast(stats[s].x - top);
        sum += stats[s].y * share;
        v += a.out[(at + s) * dim + threadIdx.x] * share;
    }
    out[((size_t)row * a.heads + head) * dim + threadIdx.x] = narrow(v / sum);
}
