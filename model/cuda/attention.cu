/* Causal attention over packed sequences, forward: the online softmax of FlashAttention-2 (Dao
 * 2023). A block of threads has ROWS queries of one head and reads its keys KEYS at a time. It
 * computes with one tile of K and V while the next one is loaded. Rows of out and qkv must begin at
 * multiples of 16 bytes. */
#include "attention.cuh"
#include "softmax.cuh"

template <int D> struct Forward {
    static constexpr bool GROUPED = Cut<D>::GROUPED;
    static constexpr int M = GROUPED || D > 128 ? 1 : 2; /* a warp's rows / 16 */
    static constexpr int ROWS = 16 * M * Cut<D>::WARPS, GROUP = GROUPED ? 64 : 16 * M;
    static constexpr int KEYS = !GROUPED ? 32 : D > 64 ? 128 : 64;
    static constexpr int BLOCKS = D == 64 ? 2 : Cut<D>::BLOCKS;
};

/* How far the top of a row is raised above its largest score. With it most tiles leave the sums as
 * they are. */
constexpr float SLACK = 8;

/* Raise the tops of rows (lift is MAGIC - top) above these scores. Returns whether one of the warp
 * was raised; then `factor` scales the earlier sums. */
template <int M, int N>
__device__ __forceinline__ bool tops_raised(float (&lift)[M][2], float (&factor)[M][2],
                                            const float (&s)[M][N][4], float scale)
{
    bool rises = false;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float x = fmaxf(s[m][0][2 * h], s[m][0][2 * h + 1]);
#pragma unroll
            for (int n = 1; n < N; n++) x = fmaxf(x, fmaxf(s[m][n][2 * h], s[m][n][2 * h + 1]));
            x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
            x = fmaxf(x, __shfl_xor_sync(~0u, x, 2));
            factor[m][h] = x;
            rises |= fmaf(x, scale, lift[m][h]) > MAGIC;
        }
    rises = __any_sync(~0u, rises);
    if (rises)
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float raised = fminf(lift[m][h], MAGIC - SLACK - ceilf(factor[m][h] * scale));
                factor[m][h] = exp2_fast(raised - lift[m][h]); /* an exact power of two */
                lift[m][h] = raised;
            }
    return rises;
}

/* Scores become weights. sum is over this thread's columns. */
template <int M, int N>
__device__ __forceinline__ void weights(float (&s)[M][N][4], float (&sum)[M][2],
                                        const float (&lift)[M][2], float scale)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int n = 0; n < N; n += 2) {
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    float &x = s[m][n + (i >> 1)][2 * h + (i & 1)];
                    x = weight(x, scale, lift[m][h]);
                }
                sum[m][h] += weights_sum(s[m][n][2 * h], s[m][n][2 * h + 1], s[m][n + 1][2 * h],
                                         s[m][n + 1][2 * h + 1]);
            }
}

/* Scores, with -inf for missing keys, become the left operand of the product with V, while the
 * product of the previous tile is in flight. */
template <int D, int M, int N>
__device__ __forceinline__ void softmax_tile(unsigned (&prob)[M][N / 2][4], float (&s)[M][N][4],
                                             float (&o)[M][D / 8][4], float (&lift)[M][2],
                                             float (&sum)[M][2], float scale)
{
    float factor[M][2];
    bool raised = tops_raised(lift, factor, s, scale);
    if (raised)
#pragma unroll
        for (int m = 0; m < M; m++) sum[m][0] *= factor[m][0], sum[m][1] *= factor[m][1];
    weights(s, sum, lift, scale);
    pin(s);
    /* The wait is in both branches; otherwise the assembler would move it before the weights. */
    if (raised) {
        products_wait<D, 0>(o);
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int n = 0; n < D / 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) o[m][n][i] *= factor[m][i >> 1];
    } else {
        products_wait<D, 0>(o);
    }
    round_rows(prob, s);
}

/* Store the log-sum-exps of `rows` rows of a warp from row `first` of the batch. sum becomes the
 * factor of o. */
template <int M>
__device__ __forceinline__ void softmax_end(float *lse, int first, int rows, int heads,
                                            const float (&lift)[M][2], float (&sum)[M][2])
{
    int g = threadIdx.x >> 2 & 7, t = threadIdx.x & 3;
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int at = 16 * m + 8 * h + g;
            sum[m][h] = warp_sum(sum[m][h], 4);
            if (t == 0 && at < rows)
                lse[(long long)(first + at) * heads] =
                    (MAGIC - lift[m][h] + __log2f(sum[m][h])) * LN2;
            sum[m][h] = 1 / sum[m][h];
        }
}

template <int D>
__device__ __forceinline__ void attention(bf16 *out, float *lse, const bf16 *qkv, const int *start,
                                          int n, int blocks, int heads, int kv_heads, int dim,
                                          float scale)
{
    using F = Forward<D>;
    constexpr int M = F::M, ROWS = F::ROWS, KEYS = F::KEYS, TILE = KEYS * 2 * D, ROW = Cut<D>::ROW;
    extern __shared__ __align__(1024) unsigned char shared[];
    Place p;
    int head = blockIdx.x % heads, ld = (heads + 2 * kv_heads) * dim, out_ld = heads * dim;
    if (!place_of(&p, blockIdx.x / heads, start, n, blocks, ROWS, true)) return;
    int row = p.block * ROWS, mine = row + (threadIdx.x >> 5) * 16 * M,
        lead = mine / F::GROUP * F::GROUP;
    int tiles = (min(row + ROWS, p.len) + KEYS - 1) / KEYS;
    int seen = lead < p.len ? min(tiles, (lead + F::GROUP + KEYS - 1) / KEYS)
                            : 0; /* tiles with keys for this group's queries */
    const bf16 *q = qkv + (long long)(p.first + row) * ld + head * dim;
    const bf16 *k = qkv + (long long)p.first * ld + (heads + head / (heads / kv_heads)) * dim,
               *v = k + kv_heads * dim;
    unsigned own = shared_address(shared), k_at = own + ROWS * 2 * D,
             v_at = k_at + 2 * TILE; /* two tiles each, alternating */
    tile_load<D, ROWS>(own, q, ld, p.len - row, dim);
    tile_load<D, KEYS>(k_at, k, ld, p.len, dim);

    float o[M][D / 8][4] = {}, lift[M][2], sum[M][2] = {}, s[M][KEYS / 8][4];
    unsigned prob[M][KEYS / 16][4];
#pragma unroll
    for (int m = 0; m < M; m++)
        lift[m][0] = lift[m][1] = INFINITE; /* the first tile has a key for every query */
        /* Round j computes the scores of tile j. Their product with the values follows in round j +
         * 1, during the softmax of that round. */
#pragma unroll 1
    for (int j = 0; j <= tiles; j++) {
        int at = j * KEYS, next = at + KEYS;
        copies_wait();
        /* K of this round and V of the last are loaded, and the previous ones are no longer used */
        __syncthreads();
        if (j + 1 < tiles)
            tile_load<D, KEYS>(k_at + (~j & 1) * TILE, k + (long long)next * ld, ld, p.len - next,
                               dim);
        if (j < tiles)
            tile_load<D, KEYS>(v_at + (j & 1) * TILE, v + (long long)at * ld, ld, p.len - at, dim);
        if (j > seen || seen == 0) continue;
        if (j == seen) {
            product_add<D, KEYS>(o, prob, v_at + (~j & 1) * TILE);
            products_wait<D, 0>(o);
            continue;
        }
        product_rows<D, ROWS, M, KEYS>(s, own + (lead - row) * ROW, k_at + (j & 1) * TILE);
        if (j) {
            product_add<D, KEYS>(o, prob, v_at + (~j & 1) * TILE);
            products_wait<D, 1>(s);
        } else {
            products_wait<D, 0>(s);
        }
        if (at + KEYS - 1 > mine) mask_later(s, mine, at, -INFINITE);
        softmax_tile<D>(prob, s, o, lift, sum, scale);
    }
    if (seen == 0) return;
    softmax_end(lse + head, p.first + mine, p.len - mine, heads, lift, sum);
    rows_store<D, M, ROWS>(out + (long long)(p.first + mine) * out_ld + head * dim, out_ld,
                           p.len - mine, dim, own + (mine - row) * ROW, o, sum);
}

/* blocks: see place_of; scale: log2(e) dim^-0.5; dim: at most D. One block per task and head. */
#define ATTENTION(D)                                                                               \
    extern "C" __global__ void __launch_bounds__(Cut<D>::THREADS, Forward<D>::BLOCKS)              \
        attention_##D(bf16 *out, float *lse, const bf16 *qkv, const int *start, int n, int blocks, \
                      int heads, int kv_heads, int dim, float scale)                               \
    {                                                                                              \
        attention<D>(out, lse, qkv, start, n, blocks, heads, kv_heads, dim, scale);                \
    }
ATTENTION(32)
ATTENTION(64)
ATTENTION(128)
ATTENTION(256)
