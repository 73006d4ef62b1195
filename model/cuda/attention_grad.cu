/* Causal attention over packed sequences, backward. No sum depends on the order in which blocks
 * run: one kernel has the queries of a block and loops over the keys (dQ), another has keys and
 * loops over the queries of every head of their group (dK, dV). Both recompute the probabilities
 * from the log-sum-exp, and sum in registers in one order.
 *
 *    P = exp(S - lse)   dV = P^T dO   dS = P (dO V^T - rowsum(dO O))
 *    dQ = dS K dim^-0.5   dK = dS^T Q dim^-0.5 */
#include "attention.cuh"

constexpr int THREADS = 128; /* of the two kernels without products */

/* statistics: [2][heads][rows], log2(e) lse and rowsum(dO O). `lanes` adjacent lanes, a power of
 * two, share a row of a head. */
extern "C" __global__ void __launch_bounds__(THREADS)
    attention_grad_rows(float *statistics, const bf16 *dout, const bf16 *out, const float *lse,
                        int rows, int heads, int dim, int lanes)
{
    long long vector = ((long long)blockIdx.x * THREADS + threadIdx.x) / lanes,
              vectors = (long long)rows * heads;
    int column = threadIdx.x % lanes * 8;
    float sum = 0;
    if (vector < vectors && column < dim) {
        float a[8], b[8];
        unpack8(a, *(const uint4 *)(dout + vector * dim + column));
        unpack8(b, *(const uint4 *)(out + vector * dim + column));
#pragma unroll
        for (int i = 0; i < 8; i++) sum += a[i] * b[i];
    }
    sum = warp_sum(sum, lanes);
    if (vector >= vectors || column) return;
    long long row = vector / heads, at = vector % heads * rows + row;
    statistics[at] = lse[vector] * LOG2E;
    statistics[vectors + at] = sum;
}

/* ---- dQ ---- */

template <int D> struct GradQ {
    static constexpr bool GROUPED = Cut<D>::GROUPED;
    static constexpr int M = GROUPED || D > 128 ? 1 : 2, ROWS = 16 * M * Cut<D>::WARPS,
                         GROUP = GROUPED ? 64 : 16 * M;
    static constexpr int KEYS = GROUPED ? 128 : D > 128 ? 16 : 32;
    static constexpr int BLOCKS = !GROUPED && D == 64 ? 2 : Cut<D>::BLOCKS;
};

/* The statistics of this thread's rows, of which the first is `mine`; 0 beyond the sequence. */
template <int M>
__device__ __forceinline__ void statistics_of(float (&lse)[M][2], float (&delta)[M][2],
                                              const float *statistics, const Place &p, int mine,
                                              int head, int heads, int rows)
{
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int at = mine + 16 * m + 8 * h + (threadIdx.x >> 2 & 7);
            const float *of = statistics + (long long)head * rows + p.first + at;
            lse[m][h] = at < p.len ? of[0] : 0;
            delta[m][h] = at < p.len ? of[(long long)heads * rows] : 0;
        }
}

template <int D>
__device__ __forceinline__ void grad_q(bf16 *dqkv, const bf16 *qkv, const bf16 *dout,
                                       const float *statistics, const int *start, int n, int blocks,
                                       int rows, int heads, int kv_heads, int dim, float scale)
{
    constexpr int M = GradQ<D>::M, ROWS = GradQ<D>::ROWS, KEYS = GradQ<D>::KEYS,
                  GROUP = GradQ<D>::GROUP;
    constexpr int TILE = KEYS * 2 * D, ROW = Cut<D>::ROW;
    extern __shared__ __align__(1024) unsigned char shared[];
    Place p;
    int head = blockIdx.x % heads;
    if (!place_of(&p, blockIdx.x / heads, start, n, blocks, ROWS, true)) return;
    int ld = (heads + 2 * kv_heads) * dim, out_ld = heads * dim;
    int row = p.block * ROWS, mine = row + (threadIdx.x >> 5) * 16 * M, lead = mine / GROUP * GROUP;
    int tiles = (min(row + ROWS, p.len) + KEYS - 1) / KEYS;
    const bf16 *k = qkv + (long long)p.first * ld + (heads + head / (heads / kv_heads)) * dim;
    unsigned own = shared_address(shared), kv = own + 2 * ROWS * 2 * D; /* Q, dO; K, V twice */
    tile_load<D, ROWS>(own, qkv + (long long)(p.first + row) * ld + head * dim, ld, p.len - row,
                       dim);
    tile_load<D, ROWS>(own + ROWS * 2 * D, dout + (long long)(p.first + row) * out_ld + head * dim,
                       out_ld, p.len - row, dim);
    tile_load<D, KEYS>(kv, k, ld, p.len, dim);
    tile_load<D, KEYS>(kv + TILE, k + kv_heads * dim, ld, p.len, dim);
    unsigned group = own + (lead - row) * ROW;
    float dq[M][D / 8][4] = {}, lse[M][2], delta[M][2], factor[M][2];
    statistics_of(lse, delta, statistics, p, mine, head, heads, rows);
#pragma unroll
    for (int m = 0; m < M; m++) factor[m][0] = factor[m][1] = scale * LN2;
#pragma unroll 1
    for (int j = 0; j < tiles; j++) {
        unsigned now = kv + (j & 1) * 2 * TILE, next = kv + (~j & 1) * 2 * TILE;
        int at = j * KEYS;
        copies_wait();
        __syncthreads(); /* this tile is loaded, and the previous one is no longer used */
        if (j + 1 < tiles) {
            k += KEYS * ld;
            tile_load<D, KEYS>(next, k, ld, p.len - at - KEYS, dim);
            tile_load<D, KEYS>(next + TILE, k + kv_heads * dim, ld, p.len - at - KEYS, dim);
        }
        if (at >= lead + GROUP || lead >= p.len) continue; /* keys after this group's queries */
        float s[M][KEYS / 8][4], dp[M][KEYS / 8][4];
        product_rows<D, ROWS, M, KEYS>(s, group, now);
        product_rows<D, ROWS, M, KEYS>(dp, group + ROWS * 2 * D, now + TILE);
        products_wait<D, 1>(s);
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int c = 0; c < KEYS / 8; c++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    s[m][c][i] = exp2_fast(s[m][c][i] * scale - lse[m][i >> 1]);
        /* Here, so that the assembler places the exponentials before the wait. */
        if (at + KEYS - 1 > mine) mask_later(s, mine, at, 0);
        products_wait<D, 0>(dp);
#pragma unroll
        for (int m = 0; m < M; m++)
#pragma unroll
            for (int c = 0; c < KEYS / 8; c++)
#pragma unroll
                for (int i = 0; i < 4; i++) s[m][c][i] *= dp[m][c][i] - delta[m][i >> 1];
        unsigned ds[M][KEYS / 16][4];
        round_rows(ds, s);
        product_add<D, KEYS>(dq, ds, now);
        products_wait<D, 0>(dq);
    }
    if (lead < p.len)
        rows_store<D, M, ROWS>(dqkv + (long long)(p.first + mine) * ld + head * dim, ld,
                               p.len - mine, dim, own + (mine - row) * ROW, dq, factor);
}

/* ---- dK and dV ---- */

template <int D> struct GradKV {
    static constexpr int KEYS = 16 * Cut<D>::WARPS, QUERIES = Cut<D>::GROUPED ? 64
                                                              : D > 128       ? 16
                                                                              : 32;
    static constexpr int GROUP = Cut<D>::GROUPED ? 64 : 16;
};

/* Store a warp's 16 rows of this part's sums. */
template <int D>
__device__ __forceinline__ void sums_store(float *to, int ld, int rows, int dim,
                                           const float (&c)[1][D / 8][4], float factor)
{
    int g = threadIdx.x >> 2 & 7, t = threadIdx.x & 3;
#pragma unroll
    for (int n = 0; n < D / 8; n++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (8 * h + g < rows && 8 * n < dim)
                *(float2 *)(to + (long long)(8 * h + g) * ld + 8 * n + 2 * t) =
                    make_float2(c[0][n][2 * h] * factor, c[0][n][2 * h + 1] * factor);
}

/* Add the terms of a tile of queries from `query` on to the keys of a group: Q is at q, and dO
 * after it. own: the group's keys, with its values a tile after them; mine: the warp's first key;
 * numbers: the statistics of the queries. WITH_V, WITH_K: which gradients. */
template <int D, bool WITH_V, bool WITH_K>
__device__ __forceinline__ void grad_kv_tile(float (&dk)[1][D / 8][4], float (&dv)[1][D / 8][4],
                                             unsigned own, int mine, unsigned q, int query,
                                             unsigned numbers, float scale)
{
    constexpr int KEYS = GradKV<D>::KEYS, QUERIES = GradKV<D>::QUERIES;
    int t = threadIdx.x & 3, edge = mine + (int)(threadIdx.x >> 2 & 7) - query - 2 * t;
    unsigned d_o = q + QUERIES * 2 * D, p[1][QUERIES / 16][4], ds[1][QUERIES / 16][4];
    float s[1][QUERIES / 8][4], dp[1][QUERIES / 8][4];
    product_rows<D, KEYS, 1, QUERIES>(s, own, q);
    if (WITH_K) product_rows<D, KEYS, 1, QUERIES>(dp, own + KEYS * 2 * D, d_o);
    products_wait<D, WITH_K>(s);
    if (query < mine + 15)
#pragma unroll
        for (int c = 0; c < QUERIES / 8; c++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (8 * c + (i & 1) - 8 * (i >> 1) < edge) s[0][c][i] = -INFINITE;
#pragma unroll
    for (int c = 0; c < QUERIES / 8; c++) {
        float2 lse = shared_pair(numbers + (8 * c + 2 * t) * 4);
#pragma unroll
        for (int i = 0; i < 4; i++)
            s[0][c][i] = exp2_fast(s[0][c][i] * scale - (i & 1 ? lse.y : lse.x));
    }
    if (WITH_V) {
        round_rows(p, s);
        product_add<D, QUERIES>(dv, p, d_o);
    }
    if (WITH_K) {
        products_wait<D, WITH_V>(dp);
#pragma unroll
        for (int c = 0; c < QUERIES / 8; c++) {
            float2 delta = shared_pair(numbers + (QUERIES + 8 * c + 2 * t) * 4);
#pragma unroll
            for (int i = 0; i < 4; i++) s[0][c][i] *= dp[0][c][i] - (i & 1 ? delta.y : delta.x);
        }
        round_rows(ds, s);
        product_add<D, QUERIES>(dk, ds, q);
        products_wait<D, 0>(dk);
    }
    products_wait<D, 0>(dv);
}

/* If a group's heads have several parts, they write their sums to `sums` [parts][rows][k heads, v
 * heads][dim]. */
template <int D, bool WITH_V, bool WITH_K>
__device__ __forceinline__ void grad_kv(bf16 *dqkv, float *sums, const bf16 *qkv, const bf16 *dout,
                                        const float *statistics, const int *start, int n,
                                        int blocks, int rows, int heads, int kv_heads, int dim,
                                        int parts, float scale)
{
    constexpr int KEYS = GradKV<D>::KEYS, QUERIES = GradKV<D>::QUERIES, GROUP = GradKV<D>::GROUP;
    constexpr int TILE = QUERIES * 2 * D, ROW = Cut<D>::ROW;
    extern __shared__ __align__(1024) unsigned char shared[];
    Place p;
    int mate = blockIdx.x % (kv_heads * parts), kv = mate % kv_heads, part = mate / kv_heads,
        group = heads / kv_heads;
    if (!place_of(&p, blockIdx.x / (kv_heads * parts), start, n, blocks, KEYS, false)) return;
    int ld = (heads + 2 * kv_heads) * dim, out_ld = heads * dim;
    int key = p.block * KEYS, mine = key + (threadIdx.x >> 5) * 16, lead = mine / GROUP * GROUP,
        left = p.len - mine;
    int head = kv * group + part * group / parts, end = kv * group + (part + 1) * group / parts;
    const bf16 *k = qkv + (long long)(p.first + key) * ld + (heads + kv) * dim;
    unsigned own = shared_address(shared), stages = own + 2 * KEYS * 2 * D,
             numbers = stages + 4 * TILE;
    tile_load<D, KEYS>(own, k, ld, p.len - key, dim);
    tile_load<D, KEYS>(own + KEYS * 2 * D, k + kv_heads * dim, ld, p.len - key, dim);

    /* Load Q, dO and the statistics of the queries from `at` on into one of the two stages. */
    auto load = [&](int stage, int of, int at) {
        unsigned to = stages + stage * 2 * TILE;
        tile_load<D, QUERIES>(to, qkv + (long long)(p.first + at) * ld + of * dim, ld, p.len - at,
                              dim);
        tile_load<D, QUERIES>(to + TILE, dout + (long long)(p.first + at) * out_ld + of * dim,
                              out_ld, p.len - at, dim);
        int which = threadIdx.x / QUERIES, query = threadIdx.x % QUERIES;
        if (which < 2)
            copy4(numbers + (stage * 2 * QUERIES + threadIdx.x) * 4,
                  statistics + (long long)(which * heads + of) * rows + p.first + at + query,
                  at + query < p.len ? 4 : 0);
    };
    float dk[1][D / 8][4] = {}, dv[1][D / 8][4] = {};
    load(0, head, key);
    for (int stage = 0, next = key; head < end; stage ^= 1) {
        int at = next;
        next += QUERIES;
        if (next >= p.len) {
            next = key;
            head++;
        }
        copies_wait();
        __syncthreads(); /* these queries are loaded, and the previous ones are no longer used */
        if (head < end) load(stage ^ 1, head, next);
        if (lead < p.len && at + QUERIES > lead) /* else no query attends to this group's keys */
            grad_kv_tile<D, WITH_V, WITH_K>(dk, dv, own + (lead - key) * ROW, mine,
                                            stages + stage * 2 * TILE, at,
                                            numbers + stage * 8 * QUERIES, scale);
    }
    if (lead >= p.len) return;
    own += (mine - key) * ROW;
    if (parts == 1) {
        const float one[1][2] = {{1, 1}}, factor[1][2] = {{scale * LN2, scale * LN2}};
        bf16 *to = dqkv + (long long)(p.first + mine) * ld + (heads + kv) * dim;
        if (WITH_K) rows_store<D, 1, KEYS>(to, ld, left, dim, own, dk, factor);
        if (WITH_V)
            rows_store<D, 1, KEYS>(to + kv_heads * dim, ld, left, dim, own + KEYS * 2 * D, dv, one);
    } else {
        int all = 2 * kv_heads * dim;
        float *to = sums + ((long long)part * rows + p.first + mine) * all + kv * dim;
        if (WITH_K) sums_store<D>(to, all, left, dim, dk, scale * LN2);
        if (WITH_V) sums_store<D>(to + kv_heads * dim, all, left, dim, dv, 1);
    }
}

/* Keys and values of dqkv: the sums of the parts, added in order. A thread has two columns. */
extern "C" __global__ void __launch_bounds__(THREADS)
    attention_grad_sum(bf16 *dqkv, const float *sums, int rows, int heads, int kv_heads, int dim,
                       int parts)
{
    int pairs = kv_heads * dim, ld = (heads + 2 * kv_heads) * dim;
    long long at = (long long)blockIdx.x * THREADS + threadIdx.x, all = (long long)rows * pairs;
    if (at >= all) return;
    float2 total = {0, 0};
    for (int i = 0; i < parts; i++) {
        float2 v = *(const float2 *)(sums + 2 * (i * all + at));
        total.x += v.x;
        total.y += v.y;
    }
    *(unsigned *)(dqkv + at / pairs * ld + heads * dim + at % pairs * 2) = pack2(total.x, total.y);
}

/* blocks: see place_of; scale: log2(e) dim^-0.5; dim: at most D. One block per task and head. */
#define GRAD_Q(D)                                                                            \
    extern "C" __global__ void __launch_bounds__(Cut<D>::THREADS, GradQ<D>::BLOCKS)          \
        attention_grad_q_##D(bf16 *dqkv, const bf16 *qkv, const bf16 *dout,                  \
                             const float *statistics, const int *start, int n, int blocks,   \
                             int rows, int heads, int kv_heads, int dim, float scale)        \
    {                                                                                        \
        grad_q<D>(dqkv, qkv, dout, statistics, start, n, blocks, rows, heads, kv_heads, dim, \
                  scale);                                                                    \
    }
GRAD_Q(32)
GRAD_Q(64)
GRAD_Q(128)
GRAD_Q(256)

/* One block per task, key head and part. */
#define GRAD_KV(NAME, D, WITH_V, WITH_K)                                                          \
    extern "C" __global__ void __launch_bounds__(Cut<D>::THREADS, Cut<D>::BLOCKS)                 \
        attention_grad_##NAME##_##D(bf16 *dqkv, float *sums, const bf16 *qkv, const bf16 *dout,   \
                                    const float *statistics, const int *start, int n, int blocks, \
                                    int rows, int heads, int kv_heads, int dim, int parts,        \
                                    float scale)                                                  \
    {                                                                                             \
        grad_kv<D, WITH_V, WITH_K>(dqkv, sums, qkv, dout, statistics, start, n, blocks, rows,     \
                                   heads, kv_heads, dim, parts, scale);                           \
    }
GRAD_KV(kv, 32, true, true)
GRAD_KV(kv, 64, true, true)
GRAD_KV(kv, 128, true, true)
GRAD_KV(v, 256, true, false)
GRAD_KV(k, 256, false, true)
