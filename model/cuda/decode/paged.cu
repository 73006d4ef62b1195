/* Attention of one new token per row over pages of keys and values, equal to the full pass bit for
 * bit (softmax.cuh). The keys and values of a row are read once for all query heads of their group,
 * by two kernels. In the first a warp has 16 keys and stores their weights. In the second a warp
 * has columns of a head's values and loops over all keys in order. */
#include "decode.cuh"
#include "softmax.cuh"

/* Of a tile: two pages, with one group per warp of the first kernel. */
constexpr int TOKENS = 64, GROUPS = TOKENS / 16;

extern __shared__ uint4 room[];

/* Copy keys and values of a prompt, rows of q|k|v, to the pages of a table. One block per row. */
extern "C" __global__ void __launch_bounds__(256)
    store_prompt(Pages pages, const bf16 *qkv, const int *table, int heads, int layer)
{
    int token = blockIdx.x, n = pages.kv_heads * pages.dim;
    const bf16 *k = qkv + ((size_t)token * (heads + 2 * pages.kv_heads) + heads) * pages.dim;
    for (int i = threadIdx.x * 8; i < 2 * n; i += blockDim.x * 8) {
        int values = i >= n, at = i - values * n, head = at / pages.dim;
        bf16 *to = page_row(pages, table[token / PAGE], layer, values, head, token % PAGE) +
                   at % pages.dim;
        *(uint4 *)to = *(const uint4 *)(k + i);
    }
}

/* ---- attention ---- */

/* What thread t of four has of a group of 16 keys for one query head: the weights of keys 2t, 2t +
 * 1, 2t + 8 and 2t + 9 as bf16, their sum before the rounding, and the top that they are relative
 * to. */
struct __align__(16) Weights
{
    unsigned low, high;
    float sum, top;
};

struct Attend {
    const bf16 *q; /* [rows][heads * dim] */
    bf16 *out;
    Weights *weights; /* [rows][kv heads][tiles][GROUPS][heads of a kv head][4] */
    int tiles, heads, layer;
    float scale; /* dim^-0.5 log2(e) */
};

constexpr float LEAST = -1e30f; /* the top where there are no keys */
/* The step between tops: most groups have the same top and need no scaling. */
constexpr float STEP = 64;

__device__ __forceinline__ Weights *weights_at(const Attend &a, int kv_heads, int tile)
{
    size_t row = (size_t)blockIdx.z * kv_heads + blockIdx.y;
    return a.weights + (row * a.tiles + tile) * (TOKENS / 4) * (a.heads / kv_heads);
}

/* The page of a token; for tokens beyond the table, any page. */
__device__ __forceinline__ int page_of(const Rows &rows, int token)
{
    return rows.table[(size_t)blockIdx.z * rows.ld + min(token / PAGE, rows.ld - 1)];
}

/* Copy 16 adjacent rows of dim numbers to shared rows of `ld`, as thread `i` of n. Rows from
 * `there` on, and columns from dim to a multiple of 16, become 0. */
__device__ __forceinline__ void load_rows(bf16 *to, int ld, const bf16 *from, int there, int dim,
                                          int i, int n)
{
    int pieces = (dim + 15) / 16 * 2, shift = 32 - __clz(pieces - 1),
        column = (i & ((1 << shift) - 1)) * 8;
    if (column >= pieces * 8) return;
    from += column, to += column;
#pragma unroll 4
    for (int row = i >> shift; row < 16; row += n >> shift)
        copy16(to + row * ld, from + row * dim, row < there && column < dim);
}

/* Scores of 16 keys: c[j] has keys 8 j + 2 t and 8 j + 2 t + 1, for query heads g and g + 8. */
__device__ __forceinline__ void scores(float (&c)[2][4], const bf16 *q, const bf16 *k, int ld,
                                       int dim)
{
    int lane = threadIdx.x & 31;
    const bf16 *q_row = q + (lane % 16) * ld + lane / 16 * 8,
               *k_row = k + (lane / 16 * 8 + lane % 8) * ld + lane / 8 % 2 * 8;
#pragma unroll
    for (int j = 0; j < 2; j++) c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
#pragma unroll 4
    for (int s = 0; s < dim; s += 16) {
        unsigned a[4], b[4];
        load_matrices<false>(a, q_row + s);
        load_matrices<false>(b, k_row + s);
        mma(c[0], a[0], a[1], a[2], a[3], b[0], b[1]);
        mma(c[1], a[0], a[1], a[2], a[3], b[2], b[3]);
    }
}

/* Compute the weights of 16 keys, of which `left` exist, from their scores. to: of the group's
 * first query head. */
__device__ __forceinline__ void put_weights(Weights *to, const float (&c)[2][4], int left,
                                            int heads, float scale)
{
    int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float p[4], top = -INFINITE;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            p[i] = 8 * (i >> 1) + 2 * t + (i & 1) < left ? c[i >> 1][2 * h + (i & 1)] : -INFINITE;
            top = fmaxf(top, p[i]);
        }
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
        top = fmaxf(ceilf(top * (scale / STEP) - 0.5f) * STEP + STEP / 2, LEAST);
#pragma unroll
        for (int i = 0; i < 4; i++) p[i] = weight(p[i], scale, MAGIC - top);
        if (g + 8 * h < heads)
            to[32 * h + lane] = Weights{pack2(p[0], p[1]), pack2(p[2], p[3]),
                                        weights_sum(p[0], p[1], p[2], p[3]), top};
    }
}

/* Blocks: (any number, which share the tiles; kv heads; rows). Shared memory: 16 rows for q, TOKENS
 * rows for keys, and as many again if there are fewer blocks than tiles. A row is dim padded to 16,
 * plus 8. */
extern "C" __global__ void __launch_bounds__(32 * GROUPS)
    paged_weights(Attend a, Rows rows, Pages pages)
{
    int dim = pages.dim, ld = (dim + 15) / 16 * 16 + 8, heads = a.heads / pages.kv_heads;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, tile = blockIdx.x, step = gridDim.x,
        key = tile * TOKENS + warp * 16;
    int page = page_of(rows, key), next_page = page_of(rows, key + step * TOKENS),
        len = rows.pos[blockIdx.z] + 1;
    bf16 *q = (bf16 *)room, *k = q + (16 + warp * 16) * ld;
    next_may_start();
    if (tile * TOKENS >= len) return previous_done();
    bool early = key + 16 < len; /* only the newest token is written in this step */
    if (!early) previous_done();
    load_rows(k, ld, page_row(pages, page, a.layer, 0, blockIdx.y, key % PAGE), len - key, dim,
              lane, 32);
    if (early) previous_done();
    load_rows(q, ld, a.q + ((size_t)blockIdx.z * a.heads + blockIdx.y * heads) * dim, heads, dim,
              threadIdx.x, 32 * GROUPS);
    copies_commit();
    for (int i = 0; tile * TOKENS < len; i ^= 1) {
        int next = key + step * TOKENS;
        if (next - warp * 16 < len)
            load_rows(k + (~i & 1) * TOKENS * ld, ld,
                      page_row(pages, next_page, a.layer, 0, blockIdx.y, key % PAGE), len - next,
                      dim, lane, 32);
        copies_commit();
        next_page = page_of(rows, next + step * TOKENS);
        copies_wait<1>();
        if (tile == blockIdx.x) __syncthreads(); /* all threads have their part of q */
        __syncwarp();
        float c[2][4];
        scores(c, q, k + i * TOKENS * ld, ld, dim);
        __syncwarp(); /* these keys are no longer used */
        put_weights(weights_at(a, pages.kv_heads, tile) + warp * heads * 4, c, len - key, heads,
                    a.scale);
        tile += step;
        key = next;
    }
}

/* ---- values ---- */

/* Sums of a lane, for query heads g and g + 8. */
struct Running {
    float top[2], sum[2];
};

/* The weights of a tile become the left operands of its products, relative to the largest top so
 * far. If the top rises, o and the sums are scaled. */
template <int N>
__device__ __forceinline__ void take_weights(unsigned (&p)[GROUPS][4], float (&o)[2 * N][4],
                                             Running &r, const Weights *w, int heads)
{
    int lane = threadIdx.x & 31;
    bool same = true;
    Weights own[2][GROUPS];
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int i = 0; i < GROUPS; i++) {
            /* rows without a head read any weights */
            own[h][i] = w[i * heads * 4 + (lane / 4 + 8 * h < heads ? lane + 32 * h : lane % 4)];
            same &= own[h][i].top == r.top[h];
        }
    if (!__all_sync(0xffffffffu, same))
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float top = r.top[h];
#pragma unroll
            for (int i = 0; i < GROUPS; i++) top = fmaxf(top, own[h][i].top);
            float shrink = exp2_fast(r.top[h] - top); /* powers of two, as the factors: exact */
            r.top[h] = top;
            r.sum[h] *= shrink;
#pragma unroll
            for (int j = 0; j < 2 * N; j++) o[j][2 * h] *= shrink, o[j][2 * h + 1] *= shrink;
#pragma unroll
            for (int i = 0; i < GROUPS; i++) {
                float factor = exp2_fast(own[h][i].top - top);
                own[h][i].low = times2(own[h][i].low, pack2(factor, factor));
                own[h][i].high = times2(own[h][i].high, pack2(factor, factor));
                own[h][i].sum *= factor;
            }
        }
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int i = 0; i < GROUPS; i++) {
            p[i][h] = own[h][i].low, p[i][2 + h] = own[h][i].high;
            r.sum[h] += own[h][i].sum;
        }
}

/* o += p v, for 16 N columns. */
template <int N>
__device__ __forceinline__ void add_values(float (&o)[2 * N][4], const unsigned (&p)[GROUPS][4],
                                           const bf16 *v, int ld)
{
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < GROUPS; i++)
#pragma unroll
        for (int j = 0; j < N; j++) {
            unsigned b[4];
            load_matrices<true>(b, v + (i * 16 + lane % 16) * ld + j * 16 + lane / 16 * 8);
            mma(o[2 * j], p[i][0], p[i][1], p[i][2], p[i][3], b[0], b[1]);
            mma(o[2 * j + 1], p[i][0], p[i][1], p[i][2], p[i][3], b[2], b[3]);
        }
}

/* A block of W warps has 16 N columns per warp. DEPTH tiles of values and weights are in shared
 * memory or in flight. */
template <int W, int N, int DEPTH> struct Values {
    static constexpr int COLUMNS = 16 * N * W, LD = COLUMNS + 8, THREADS = 32 * W,
                         PIECES = COLUMNS / 8;
    const bf16 *from;       /* in page 0: this thread's 8 columns of its first token */
    const Weights *weights; /* of tile 0 */
    size_t page_nums;
    int dim, len, n_weights, token, piece;
    bool in; /* those columns exist */

    __device__ __forceinline__ Values(const Attend &a, const Pages &pages, int len)
        : dim(pages.dim), len(len)
    {
        token = threadIdx.x / PIECES, piece = threadIdx.x % PIECES * 8;
        int column = blockIdx.x * COLUMNS + piece;
        in = column < dim;
        from = page_row(pages, 0, a.layer, 1, blockIdx.y, token) + column;
        page_nums = (size_t)pages.layers * 2 * pages.kv_heads * PAGE * dim;
        weights = weights_at(a, pages.kv_heads, 0);
        n_weights = TOKENS / 4 * (a.heads / pages.kv_heads);
    }

    __device__ __forceinline__ bf16 *values_in(int slot) const
    {
        return (bf16 *)((char *)room + slot * (TOKENS * LD * 2 + n_weights * 16));
    }
    __device__ __forceinline__ Weights *weights_in(int slot) const
    {
        return (Weights *)(values_in(slot) + TOKENS * LD);
    }

    __device__ __forceinline__ void load_values(int slot, int tile, int page0, int page1) const
    {
        bf16 *to = values_in(slot) + token * LD + piece;
        int left = in ? len - tile * TOKENS - token : 0;
#pragma unroll
        for (int i = 0; i < TOKENS; i += THREADS / PIECES)
            copy16(to + i * LD, from + (i < PAGE ? page0 : page1) * page_nums + i % PAGE * dim,
                   i < left);
    }

    __device__ __forceinline__ void load_weights(int slot, int tile) const
    {
#pragma unroll
        for (int k = 0; k < TOKENS / 4 * 16; k += THREADS) {
            int i = k + threadIdx.x;
            if (i < n_weights)
                copy16(weights_in(slot) + i, weights + (size_t)tile * n_weights + i, true);
        }
    }
};

template <int N>
__device__ __forceinline__ void put_values(const Attend &a, const float (&o)[2 * N][4],
                                           const Running &r, int column, int heads, int dim)
{
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int head = lane / 4 + 8 * h;
        float factor = 1 / warp_sum(r.sum[h], 4);
        bf16 *to = a.out + ((size_t)blockIdx.z * a.heads + blockIdx.y * heads + head) * dim +
                   column + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < 2 * N; j++)
            if (head < heads && column + 8 * j < dim)
                *(unsigned *)(to + 8 * j) = pack2(o[j][2 * h] * factor, o[j][2 * h + 1] * factor);
    }
}

/* Blocks: (slices of a head's columns, kv heads, rows). Shared memory: DEPTH tiles, each of TOKENS
 * rows of LD numbers and n_weights weights. */
template <int W, int N, int DEPTH>
__device__ __forceinline__ void paged_values(const Attend &a, const Rows &rows, const Pages &pages)
{
    using V = Values<W, N, DEPTH>;
    int heads = a.heads / pages.kv_heads, first_pages = page_of(rows, (threadIdx.x & 31) * PAGE);
    int len = rows.pos[blockIdx.z] + 1, tiles = (len + TOKENS - 1) / TOKENS,
        warp_column = (threadIdx.x >> 5) * 16 * N;
    next_may_start();
    if (len == 0) return previous_done();
    const V v(a, pages, len);
#pragma unroll 1
    for (int i = 0; i < DEPTH - 1 && (i + 1) * TOKENS < len;
         i++) /* only the newest token is written in this step */
        v.load_values(i, i, __shfl_sync(0xffffffffu, first_pages, 2 * i),
                      __shfl_sync(0xffffffffu, first_pages, 2 * i + 1));
    previous_done();
#pragma unroll 1
    for (int i = 0; i < DEPTH - 1; i++) {
        int page0 = __shfl_sync(0xffffffffu, first_pages, 2 * i),
            page1 = __shfl_sync(0xffffffffu, first_pages, 2 * i + 1);
        if (i < tiles) v.load_weights(i, i);
        if (i < tiles && (i + 1) * TOKENS >= len) v.load_values(i, i, page0, page1);
        copies_commit();
    }
    int page0 = page_of(rows, (DEPTH - 1) * TOKENS),
        page1 = page_of(rows, (DEPTH - 1) * TOKENS + PAGE);
    int last = 0, slot = 1,
        spare = DEPTH - 1; /* of the previous tile, of this one, and of the next one to load */
    float o[2 * N][4] = {};
    unsigned p[GROUPS][4];
    Running r = {{LEAST, LEAST}, {0, 0}};
    copies_wait<DEPTH - 2>();
    __syncthreads();
    take_weights<N>(p, o, r, v.weights_in(0), heads);
#pragma unroll 1
    for (int tile = 1; tile < tiles;
         tile++) { /* loads its weights while the values of the previous tile are added */
        int next = tile + DEPTH - 2;
        copies_wait<DEPTH - 3>();
        __syncthreads();
        if (next < tiles) {
            v.load_values(spare, next, page0, page1);
            v.load_weights(spare, next);
            page0 = page_of(rows, (next + 1) * TOKENS),
            page1 = page_of(rows, (next + 1) * TOKENS + PAGE);
        }
        copies_commit();
        add_values<N>(o, p, v.values_in(last) + warp_column, V::LD);
        take_weights<N>(p, o, r, v.weights_in(slot), heads);
        spare = last, last = slot, slot = slot + 1 == DEPTH ? 0 : slot + 1;
    }
    add_values<N>(o, p, v.values_in(last) + warp_column, V::LD);
    put_values<N>(a, o, r, blockIdx.x * V::COLUMNS + warp_column, heads, pages.dim);
}

/* The kernels by the columns of a slice. */
extern "C" __global__ void __launch_bounds__(32, 2) paged_values16(Attend a, Rows rows, Pages pages)
{
    paged_values<1, 1, 12>(a, rows, pages);
}
extern "C" __global__ void __launch_bounds__(64, 2) paged_values64(Attend a, Rows rows, Pages pages)
{
    paged_values<2, 2, 6>(a, rows, pages);
}
extern "C" __global__ void __launch_bounds__(128, 2)
    paged_values128(Attend a, Rows rows, Pages pages)
{
    paged_values<4, 2, 4>(a, rows, pages);
}
