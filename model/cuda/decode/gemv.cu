/* Products of few rows, y[rows, n] = x[rows, k] w[n, k]^T, which are bound by reading w. Each sum
 * is one chain along k, 16 products a link. It has the bits of the full pass, and does not depend
 * on how rows and outputs are divided into blocks. w is the left operand of the tensor cores and x
 * the right one, so that one row costs as much as eight. A group of four warps has a tile of up to
 * 64 outputs. A block processes items of work one after another, with all copies to shared memory
 * several stages ahead.
 *
 * Wide products (product8 to 64): the groups of a block share the rows of x, and all threads copy.
 * The tiles have the layout of attention.cuh, for wgmma. Other architectures, and PTX for plain
 * sm_90, compute with mma.
 *
 * Narrow products (chain8 to 64) have so few outputs that a block has one tile, and the latency of
 * the chain dominates: on an H200 a link takes 24 cycles by mma, and 60 by wgmma with so few
 * columns. One group computes, by mma, and the others copy. */
#include "attention.cuh"
#include "overlap.cuh"

constexpr int CHUNK = 64; /* numbers of k: 128 bytes of each row */
constexpr unsigned ROW_BYTES = 2 * CHUNK;
constexpr int THREADS = HOPPER ? 768 : 512; /* per block, at most */
/* Threads of a narrow product's block with N rows of x, and those of them that compute. */
template <int N> constexpr int CHAIN_THREADS = N < 64 ? 512 : 384;
constexpr int COMPUTING = 128;

/* An adapter's low up^T is a separate chain and comes last, while the previous kernel may still
 * compute low. */
struct Product {
    /* [rows][n]: x w^T, after low up^T with an adapter. Gated with an adapter: [rows][2 n],
     * scratch. */
    float *sums;
    /* [rows][n]. Gated: silu(gate) up. Otherwise, unless NULL: scale x w^T, without sums. */
    bf16 *out;
    const bf16 *x, *w;        /* [rows][k]; [n][k], gated: [2 n][k], gates first */
    const bf16 *low, *up;     /* an adapter's [rows][r] and [n][r] (gated: [2 n][r]) */
    int rows, n, k, r, gated; /* k, r: multiples of 8 */
    float scale;
};

/* An item of work: `sides` adjacent tiles of `tile` rows of w, and a block of rows of x. */
struct Division {
    int sides, tile;  /* tile: a multiple of 8; gated: of 16 */
    int stages, deep; /* stages of the circular buffer; chunks per stage */
    int row_blocks, items;
};

/* The position of a block in its work: chunks of x w^T, then the adapter's. */
struct At {
    int item, row_block, first; /* first: rows of w before the item's */
    int chunk;
};

__device__ __forceinline__ int chunks_of_w(const Product &p)
{
    return (p.k + CHUNK - 1) / CHUNK;
}
__device__ __forceinline__ int chunks_of_all(const Product &p)
{
    return chunks_of_w(p) + (p.r + CHUNK - 1) / CHUNK;
}

__device__ __forceinline__ void item_begin(At &a, const Division &d, int item)
{
    int group = item / d.row_blocks;
    a.item = item, a.row_block = item - group * d.row_blocks, a.first = group * d.sides * d.tile,
    a.chunk = 0;
}

/* A stage ends where a chain ends. */
__device__ __forceinline__ int step_end(const At &a, const Product &p, const Division &d)
{
    int own = chunks_of_w(p);
    return min(a.chunk + d.deep, a.chunk < own ? own : chunks_of_all(p));
}

/* ---- copies: a stage has, for each of its chunks, the tiles of w and then the rows of x ---- */

__device__ __forceinline__ unsigned chunk_bytes(const Division &d, int n)
{
    return (d.sides * d.tile + n) * ROW_BYTES;
}

/* Copy w, prefetching the surrounding 256 bytes into the L2 cache. */
__device__ __forceinline__ void stream16(unsigned to, const void *from, bool there)
{
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(there ? 16 : 0)
                 : "memory");
}

__device__ __forceinline__ void stage_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N> __device__ __forceinline__ void copies_left()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* Wait for all committed stages but stages - 2; they are visible to all threads after the next
 * barrier. */
__device__ __forceinline__ void stage_wait(int stages)
{
    switch (stages) {
    case 4: copies_left<2>(); break;
    case 5: copies_left<3>(); break;
    case 6: copies_left<4>(); break;
    case 7: copies_left<5>(); break;
    default: copies_left<6>();
    }
    if constexpr (WGMMA) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ unsigned piece_at(int row, int piece)
{
    return row * ROW_BYTES + ((piece ^ (row & 7)) << 4);
}

/* The copies of a thread for the next stage: of each chunk the same 16 bytes of some rows of w and
 * of some rows of x. Gated: 8 of each 16 rows of a tile are gates and 8 are their ups, so that a
 * thread has both sums. */
template <bool NARROW> struct Feed {
    At at;
    const bf16 *w, *x;
    int ld, left;      /* ld: of the operands; left: numbers from the thread's position on */
    int outputs, rows; /* existing rows of w and of x from the thread's position on */

    /* The index of the thread among those that copy, and the rows that they copy at a time. */
    static __device__ __forceinline__ int thread()
    {
        return threadIdx.x - (NARROW ? COMPUTING : 0);
    }
    static __device__ __forceinline__ int apart()
    {
        return (blockDim.x - (NARROW ? COMPUTING : 0)) >> 3;
    }
    /* The thread's first row of x. The last threads begin, since they may have no row of w. */
    static __device__ __forceinline__ int first_of_x()
    {
        return apart() - 1 - (thread() >> 3);
    }
};

template <bool NARROW>
__device__ __forceinline__ void feed_set(Feed<NARROW> &f, const Product &p, int n)
{
    int row = f.thread() >> 3, x_row = f.at.row_block * n + f.first_of_x(), of_w = chunks_of_w(p);
    bool own = f.at.chunk < of_w;
    int column = (own ? f.at.chunk : f.at.chunk - of_w) * CHUNK + 8 * (f.thread() & 7);
    int output = p.gated ? f.at.first / 2 + (row >> 4) * 8 + (row & 7) : f.at.first + row;
    f.ld = own ? p.k : p.r, f.left = f.ld - column;
    f.outputs = p.n - output, f.rows = p.rows - x_row;
    f.w = (own ? p.w : p.up) + (output + (p.gated && (row & 8) ? (size_t)p.n : 0)) * f.ld + column;
    f.x = (own ? p.x : p.low) + (size_t)x_row * f.ld + column;
}

template <bool NARROW>
__device__ __forceinline__ void feed_begin(Feed<NARROW> &f, const Product &p, const Division &d,
                                           int n)
{
    item_begin(f.at, d, blockIdx.x);
    feed_set(f, p, n);
}

template <bool NARROW>
__device__ __forceinline__ void feed_on(Feed<NARROW> &f, const Product &p, const Division &d, int n)
{
    int end = step_end(f.at, p, d), by = (end - f.at.chunk) * CHUNK;
    f.at.chunk = end;
    f.w += by, f.x += by, f.left -= by;
    if (end == chunks_of_all(p))
        item_begin(f.at, d, f.at.item + gridDim.x);
    else if (end != chunks_of_w(p))
        return;
    feed_set(f, p, n);
}

/* Copy 16 bytes of one row from each of n chunks; `left` numbers exist from the first on. */
template <bool W>
__device__ __forceinline__ void feed_row(unsigned to, const bf16 *from, int n, int left,
                                         unsigned chunk)
{
#pragma unroll 4
    for (int i = 0; i < n; i++, to += chunk, from += CHUNK, left -= CHUNK) {
        if constexpr (W)
            stream16(to, from, left > 0);
        else
            copy16(to, from, left > 0 ? 16 : 0);
    }
}

/* Narrow products have few rows and many chunks per stage, so all chunks of a row are adjacent;
 * wide ones are the other way around. */
template <bool NARROW>
__device__ __forceinline__ void feed_w(const Feed<NARROW> &f, const Product &p, const Division &d,
                                       unsigned stage, unsigned chunk)
{
    if (f.at.item >= d.items) return;
    int first = f.thread() >> 3, apart = f.apart(), outputs_apart = p.gated ? apart / 2 : apart;
    int n = step_end(f.at, p, d) - f.at.chunk, by = NARROW ? n : 1, left = f.left;
    size_t step = (size_t)outputs_apart * f.ld;
    const bf16 *w = f.w;
    stage += piece_at(first, f.thread() & 7);
#pragma unroll 1
    for (; n > 0; n -= by, w += CHUNK, left -= CHUNK, stage += chunk) {
        const bf16 *from = w;
        unsigned to = stage;
        int outputs = left > 0 ? f.outputs : 0;
#pragma unroll 1
        for (int row = first; row < d.sides * d.tile;
             row += apart, from += step, to += apart * ROW_BYTES, outputs -= outputs_apart) {
            if constexpr (NARROW)
                feed_row<true>(to, from, n, outputs > 0 ? left : 0, chunk);
            else
                stream16(to, from, outputs > 0);
        }
    }
}

template <int N, bool NARROW>
__device__ __forceinline__ void feed_x(const Feed<NARROW> &f, const Product &p, const Division &d,
                                       unsigned stage, unsigned chunk)
{
    if (f.at.item >= d.items) return;
    if (f.at.chunk >= chunks_of_w(p)) previous_done();
    int first = f.first_of_x(), apart = f.apart(), n = step_end(f.at, p, d) - f.at.chunk,
        by = NARROW ? n : 1, left = f.left;
    const bf16 *x = f.x;
    stage += d.sides * d.tile * ROW_BYTES + piece_at(first, f.thread() & 7);
#pragma unroll 1
    for (; n > 0; n -= by, x += CHUNK, left -= CHUNK, stage += chunk)
#pragma unroll 1
        for (int row = 0; first + row < N; row += apart) {
            const bf16 *from = x + (size_t)row * f.ld;
            unsigned to = stage + row * ROW_BYTES;
            if constexpr (NARROW)
                feed_row<false>(to, from, n, row < f.rows ? left : 0, chunk);
            else
                copy16(to, from, left > 0 && row < f.rows ? 16 : 0);
        }
}

/* ---- tensor cores: c[block of 8 rows of x][4], as in attention.cuh ---- */

#define QUADS_2(c, i) QUAD(c, i), QUAD(c, i + 1)
#define WGMMA_ROWS(n, slots, a, b, p, ...)                                                      \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " p ", 0; wgmma.mma_async.sync.aligned.m64n" n \
                 "k16.f32.bf16.bf16 {" slots "}, " a ", " b ", p, 1, 1, 0, 0; }"                \
                 : __VA_ARGS__                                                                  \
                 : "l"(left), "l"(right), "r"(add))

__device__ __forceinline__ void wgmma_rows(float (&c)[1][4], unsigned long long left,
                                           unsigned long long right, int add)
{
    WGMMA_ROWS("8", "%0, %1, %2, %3", "%4", "%5", "%6", QUAD(c, 0));
}

__device__ __forceinline__ void wgmma_rows(float (&c)[2][4], unsigned long long left,
                                           unsigned long long right, int add)
{
    WGMMA_ROWS("16", "%0, %1, %2, %3, %4, %5, %6, %7", "%8", "%9", "%10", QUADS_2(c, 0));
}

__device__ __forceinline__ void wgmma_rows(float (&c)[4][4], unsigned long long left,
                                           unsigned long long right, int add)
{
    WGMMA_ROWS("32", "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15", "%16",
               "%17", "%18", QUADS_4(c, 0));
}

/* The sums of a warp: 16 rows of a tile, and every parts-th (1, 2 or 4) block of 8 rows of x from
 * `part` on. c[j] belongs to block j parts + part. */
struct Share {
    int strip, part, parts;

    __device__ __forceinline__ int block(int j) const
    {
        return j * parts + part;
    }
};

/* Warps beyond the rows of a tile share the blocks of x. Those without a block get one that does
 * not exist. */
template <int N, bool GROUPED> __device__ __forceinline__ Share share_of(int tile)
{
    if (GROUPED) return Share{(int)(threadIdx.x >> 5 & 3), 0, 1};
    int warp = __shfl_sync(~0u, threadIdx.x >> 5 & 3, 0), strips = (tile + 15) >> 4,
        parts = strips == 1   ? 4
                : strips == 2 ? 2
                              : 1;
    Share s = {warp % strips, warp / strips, min(parts, N / 8)};
    if (s.part >= s.parts) s.part = N / 8;
    return s;
}

/* Start c += the tile of the thread's group by rows of x, over `chunks` chunks of both, by wgmma.
 * It is complete after multiply_end. Rows after a tile are multiplied too (by mma, up to 16 rows),
 * but not stored. */
template <int N>
__device__ __forceinline__ void multiply_begin(float (&c)[1][N / 8][4], const Division &d,
                                               unsigned stage, unsigned chunk, int chunks)
{
    unsigned w = stage + (threadIdx.x >> 7) * d.tile * ROW_BYTES,
             x = stage + d.sides * d.tile * ROW_BYTES;
    unsigned left = matrix_at(w, 0), right = matrix_at(x, 0);
    pin(c);
#pragma unroll 1
    for (; chunks > 0; chunks--, left += chunk >> 4, right += chunk >> 4) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < CHUNK / 16; k++)
            wgmma_rows(c[0], descriptor(left + 2 * k), descriptor(right + 2 * k), 1);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int N> __device__ __forceinline__ void multiply_end(float (&c)[1][N / 8][4])
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    pin(c);
}

/* Two links of a warp's chains: 32 numbers of k of its rows, and of its B blocks of x. */
template <int B> struct Links {
    unsigned w[2][4], x[B][4];
};

/* at: addresses of the lane's fragments, two of w and one of the first block of x. Blocks are
 * `apart` bytes apart. */
template <int B>
__device__ __forceinline__ void load_links(Links<B> &l, const unsigned (&at)[3], unsigned apart)
{
    load_fragments(l.w[0], at[0]);
    load_fragments(l.w[1], at[1]);
#pragma unroll
    for (int j = 0; j < B; j++) load_fragments(l.x[j], at[2] + j * apart);
}

template <int M, int B>
__device__ __forceinline__ void add_links(float (&c)[M][4], const Links<B> &l)
{
#pragma unroll
    for (int j = 0; j < B; j++) mma(c[j], l.w[0], l.x[j][0], l.x[j][1]);
#pragma unroll
    for (int j = 0; j < B; j++) mma(c[j], l.w[1], l.x[j][2], l.x[j][3]);
}

/* The chunks of a warp's B blocks. AHEAD: the next links are loaded while these are added; after
 * the last chunk its own links are loaded again. */
template <int M, int B, bool AHEAD>
__device__ __forceinline__ void multiply_share(float (&c)[M][4], unsigned w, unsigned x,
                                               unsigned apart, unsigned chunk, int chunks)
{
    int lane = threadIdx.x & 31;
    unsigned first[3] = {w + piece_at(lane & 15, lane >> 4),
                         w + piece_at(lane & 15, 2 + (lane >> 4)),
                         x + piece_at(lane & 7, lane >> 3)};
    /* 4 chunks of 16 bytes further */
    unsigned second[3] = {first[0] ^ 64, first[1] ^ 64, first[2] ^ 64};
    Links<B> even, odd;
    if (AHEAD) load_links(even, first, apart);
#pragma unroll 1
    for (; chunks > 0; chunks--) {
        if constexpr (!AHEAD) load_links(even, first, apart);
        unsigned by = chunks > 1 ? chunk : 0;
#pragma unroll
        for (int i = 0; i < 3; i++) first[i] += by;
        load_links(odd, second, apart);
        add_links(c, even);
        if constexpr (AHEAD) load_links(even, first, apart);
#pragma unroll
        for (int i = 0; i < 3; i++) second[i] += by;
        add_links(c, odd);
    }
}

/* The same by mma, where each warp has its share. */
template <int N, bool AHEAD>
__device__ __forceinline__ void multiply(float (&c)[N / 8][4], const Division &d, const Share &s,
                                         unsigned stage, unsigned chunk, int chunks)
{
    unsigned w = stage + ((threadIdx.x >> 7) * d.tile + s.strip * 16) * ROW_BYTES;
    unsigned x = stage + (d.sides * d.tile + 8 * s.part) * ROW_BYTES,
             apart = 8 * s.parts * ROW_BYTES;
    if (s.part >= s.parts) return;
    if (s.parts == 1) multiply_share<N / 8, N / 8, AHEAD>(c, w, x, apart, chunk, chunks);
    if constexpr (N >= 16)
        if (s.parts == 2) multiply_share<N / 8, N / 16, AHEAD>(c, w, x, apart, chunk, chunks);
    if constexpr (N >= 32)
        if (s.parts == 4) multiply_share<N / 8, N / 32, AHEAD>(c, w, x, apart, chunk, chunks);
}

/* ---- the end of a chain: sums are stored and set to 0 ---- */

/* Store the sums of x w^T, or of low up^T (`adapter`), in their plane, or scaled and rounded. */
template <int N>
__device__ __forceinline__ void put_sums(const Product &p, const Division &d, const At &a,
                                         const Share &s, bool adapter, const float (&c)[N / 8][4])
{
    int in_tile = 16 * s.strip + ((threadIdx.x & 31) >> 2),
        column = a.first + (threadIdx.x >> 7) * d.tile + in_tile;
    size_t plane = adapter || !p.r ? 0 : (size_t)p.rows * p.n;
#pragma unroll
    for (int j = 0; j < N / 8; j++)
#pragma unroll
        for (int e = 0; e < 4 && s.block(j) < N / 8; e++) {
            int row = a.row_block * N + 8 * s.block(j) + 2 * (threadIdx.x & 3) + (e & 1),
                right = 8 * (e >> 1);
            if (row >= p.rows || in_tile + right >= d.tile || column + right >= p.n) continue;
            size_t at = (size_t)row * p.n + column + right;
            if (p.out)
                p.out[at] = narrow(p.scale * c[j][e]);
            else
                p.sums[plane + at] = c[j][e];
        }
}

/* Gates and ups: x w^T waits for the adapter's part. Both are rounded before they are added, as in
 * cuBLASLt. */
template <int N>
__device__ __forceinline__ void put_gated(const Product &p, const Division &d, const At &a,
                                          const Share &s, bool adapter, const float (&c)[N / 8][4])
{
    int g = (threadIdx.x & 31) >> 2,
        column = (a.first + (threadIdx.x >> 7) * d.tile) / 2 + 8 * s.strip + g;
    if (16 * s.strip >= d.tile || column >= p.n) return;
#pragma unroll
    for (int j = 0; j < N / 8; j++) {
        if (s.block(j) >= N / 8) continue;
        int row = a.row_block * N + 8 * s.block(j) + 2 * (threadIdx.x & 3);
        float v[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            float *at = p.sums + (size_t)(row + (e & 1)) * (2 * p.n) + column + (e < 2 ? 0 : p.n);
            bool there = row + (e & 1) < p.rows;
            v[e] = adapter && there ? rounded(*at) + rounded(c[j][e]) : c[j][e];
            if (p.r && !adapter && there) *at = c[j][e];
        }
        if (p.r && !adapter) continue;
        unsigned y = swiglu2(pack2(v[0], v[1]), pack2(v[2], v[3]));
        bf16 *to = p.out + (size_t)row * p.n + column;
        if (row < p.rows) to[0].bits = y;
        if (row + 1 < p.rows) to[p.n].bits = y >> 16;
    }
}

template <int N> __device__ __forceinline__ void clear(float (&c)[N / 8][4])
{
#pragma unroll
    for (int j = 0; j < N / 8; j++) c[j][0] = c[j][1] = c[j][2] = c[j][3] = 0;
}

/* Blocks: the minimum of items and multiprocessors, of at least 128 threads per side; further
 * threads only copy. Shared memory: the circular buffer, and what wgmma reads after the last tile.
 * w does not depend on the previous kernel, which writes x: all stages of w are loaded at the
 * start. With an adapter the previous kernel writes low, and x is complete, because the product of
 * low starts the next kernel only after the end of the kernel before itself. */
template <int N, bool NARROW>
__device__ __forceinline__ void product(const Product &p, const Division &d)
{
    constexpr bool GROUPED =
        WGMMA && !NARROW; /* a group's product by wgmma; else each warp's by mma */
    extern __shared__ __align__(1024) unsigned char ring[];
    unsigned base = shared_address(ring), chunk = chunk_bytes(d, N), size = d.deep * chunk,
             ends = base + d.stages * size;
    bool low = p.out && !p.gated, multiplies = __shfl_sync(~0u, threadIdx.x >> 7, 0) < d.sides,
         feeds = !NARROW || !multiplies;
    float c[1][N / 8][4];
    At at;
    Feed<NARROW> in;
    const Share share = share_of<N, GROUPED>(d.tile);
    if (!low) next_may_start();
    feed_begin(in, p, d, N);
    if (feeds)
#pragma unroll 1
        for (unsigned stage = base; stage < ends; stage += size, feed_on(in, p, d, N))
            feed_w(in, p, d, stage, chunk);
    if (!p.r) previous_done();
    if (low) next_may_start();
    feed_begin(in, p, d, N);
    at = in.at;
    if (feeds)
#pragma unroll 1
        for (unsigned stage = base; stage < ends; stage += size, feed_on(in, p, d, N)) {
            feed_x<N>(in, p, d, stage, chunk);
            stage_commit();
        }
    clear<N>(c[0]);
    unsigned here = base, before = ~0u;
#pragma unroll 1
    while (at.item < d.items) {
        int end = step_end(at, p, d);
        if (feeds) stage_wait(d.stages);
        __syncthreads(); /* and the previous stage is no longer used */
        if constexpr (GROUPED)
            if (multiplies) multiply_begin<N>(c, d, here, chunk, end - at.chunk);
        if (feeds && before != ~0u) {
            feed_w(in, p, d, before, chunk);
            feed_x<N>(in, p, d, before, chunk);
            stage_commit();
            feed_on(in, p, d, N);
        }
        if constexpr (GROUPED)
            multiply_end<N>(c);
        else if (multiplies)
            multiply<N, NARROW>(c[0], d, share, here, chunk, end - at.chunk);
        at.chunk = end;
        if (end == chunks_of_w(p) || end == chunks_of_all(p)) {
            bool adapter = end > chunks_of_w(p);
            if (multiplies && p.gated) put_gated<N>(p, d, at, share, adapter, c[0]);
            if (multiplies && !p.gated) put_sums<N>(p, d, at, share, adapter, c[0]);
            clear<N>(c[0]);
            if (end == chunks_of_all(p)) item_begin(at, d, at.item + gridDim.x);
        }
        before = here;
        here = here + size == ends ? base : here + size;
    }
    copies_left<0>();
}

#define PRODUCT(N)                                                                                 \
    extern "C" __global__ void __launch_bounds__(THREADS) product##N(Product p, Division d)        \
    {                                                                                              \
        product<N, false>(p, d);                                                                   \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(CHAIN_THREADS<N>) chain##N(Product p, Division d) \
    {                                                                                              \
        product<N, true>(p, d);                                                                    \
    }
PRODUCT(8)
PRODUCT(16)
PRODUCT(32)
PRODUCT(64)

/* Copy B of some outputs, [n][rank], to its columns of [.., r] for all outputs of a product. */
extern "C" __global__ void __launch_bounds__(256)
    adapter_up(bf16 *up, const bf16 *b, int first, int n, int rank, int r, int column)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (size_t)n * rank) up[(first + i / rank) * r + column + i % rank] = b[i];
}
