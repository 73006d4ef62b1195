/* Products of few rows, y[rows, n] = x[rows, k] w[n, k]^T: bound by the reading of w, each byte once for up to 64 rows. w is the
 * left operand of the tensor cores, x the right one, so that one row costs no more than eight. A group of four warps has a tile
 * of TILE outputs; groups side by side in a block share the rows of x. A block stays and takes one item of work after another,
 * all copies to shared memory several steps ahead. The tiles lie as those of attention.cuh: for wgmma; other architectures, and
 * PTX for plain sm_90, compute with mma.
 *
 * A row's result does not depend on the rows beside it: n and k alone say how k is cut into splits and in what order an
 * element's products are summed, and the columns of a matrix instruction do not see each other. */
#include "attention.cuh"
#include "overlap.cuh"

constexpr int CHUNK = 64;  /* numbers of k: 128 bytes of each row */
constexpr int TILE = 64;   /* rows of w */
constexpr int STAGES = 4;  /* of the ring */
constexpr unsigned ROW_BYTES = 2 * CHUNK, TILE_BYTES = TILE * ROW_BYTES;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
constexpr int THREADS = 512; /* of a block at most: shared memory has no place for more tiles */
#else
constexpr int THREADS = 768;
#endif
constexpr bool GROUPED = WGMMA; /* a group's product by wgmma; else each warp's by mma */

struct Product {
    float *out;            /* [splits][rows][n], sums of a part of k each; gated: act, bf16 [rows][n] */
    const bf16 *x, *w;     /* [rows][k]; [n][k], gated: [2 n][k], gates first */
    const bf16 *low, *up;  /* an adapter's [rows][r] and [n][r] ([2 n][r]): r columns before those of x and w */
    int rows, n, k, r, splits, gated; /* k: a multiple of 8; r: of CHUNK */
    int rounds;            /* low up^T is rounded before the rest is added */
    const bf16 *bias;      /* and with this added, or NULL, once more: not gated */
};

/* An item of work: a split of k for `sides` tiles side by side and a block of rows. */
struct Division {
    int sides, deep;       /* deep: chunks of a step */
    int row_blocks, groups, items;
};

/* Where a block is in its work. */
struct At {
    int item, row_block, group, split;
    int chunk, end;
};

__device__ __forceinline__ void item_begin(At &a, const Product &p, const Division &d, int item)
{
    int of_w = (p.k + CHUNK - 1) / CHUNK, of_up = p.r / CHUNK, rest = item / d.row_blocks;
    a.item = item, a.row_block = item - rest * d.row_blocks;
    a.split = rest / d.groups, a.group = rest - a.split * d.groups;
    a.chunk = a.split ? of_up + a.split * of_w / p.splits : 0, a.end = of_up + (a.split + 1) * of_w / p.splits;
}

/* The chunks of a step end where the item does, and where the adapter's do. */
__device__ __forceinline__ int step_end(const At &a, const Product &p, const Division &d)
{
    int end = min(a.chunk + d.deep, a.end), of_up = p.r / CHUNK;
    return a.chunk < of_up ? min(end, of_up) : end;
}

/* ---- into the ring: a stage has, for each chunk of a step, the tiles of w, and then for each the rows of x ---- */

/* Of what is read along: the 256 bytes around come into the L2 cache at once. */
__device__ __forceinline__ void stream16(unsigned to, const void *from, bool there)
{
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}

__device__ __forceinline__ void stage_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/* At most N of the stages committed are still on their way; after the next barrier the others are there for all. */
template <int N> __device__ __forceinline__ void stage_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
    if constexpr (GROUPED) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ unsigned piece_at(int row, int piece) { return row * ROW_BYTES + ((piece ^ (row & 7)) << 4); }

/* What a thread copies of the next step: of each chunk the same 16 bytes of 4 rows of its group's tile, and of some rows of x.
 * Gated: of each 16 rows of a tile 8 are gates and 8 the ups that belong to them, so that a thread has both sums. */
struct Feed {
    At at;
    const bf16 *w, *x;
    int ld, left;          /* of the operands; numbers from the thread's on */
    int outputs, rows;     /* those of w and of x that are there, from the thread's on */
};

__device__ __forceinline__ void feed_set(Feed &f, const Product &p, const Division &d, int n)
{
    int row = threadIdx.x >> 3 & 15, x_row = f.at.row_block * n + (threadIdx.x >> 3), of_up = p.r / CHUNK;
    int tile = f.at.group * d.sides + (threadIdx.x >> 7);
    bool own = f.at.chunk >= of_up;
    int column = (own ? f.at.chunk - of_up : f.at.chunk) * CHUNK + 8 * (threadIdx.x & 7);
    int output = p.gated ? tile * (TILE / 2) + (row & 7) : tile * TILE + row;
    f.ld = own ? p.k : p.r, f.left = f.ld - column;
    f.outputs = p.n - output, f.rows = p.rows - x_row;
    f.w = (own ? p.w : p.up) + (output + (p.gated && row >= 8 ? (size_t)p.n : 0)) * f.ld + column;
    f.x = (own ? p.x : p.low) + (size_t)x_row * f.ld + column;
}

__device__ __forceinline__ void feed_begin(Feed &f, const Product &p, const Division &d, int n)
{
    item_begin(f.at, p, d, blockIdx.x);
    feed_set(f, p, d, n);
}

__device__ __forceinline__ void feed_on(Feed &f, const Product &p, const Division &d, int n)
{
    int end = step_end(f.at, p, d), by = (end - f.at.chunk) * CHUNK;
    f.at.chunk = end;
    f.w += by, f.x += by, f.left -= by;
    if (end >= f.at.end) item_begin(f.at, p, d, f.at.item + gridDim.x);
    else if (end != p.r / CHUNK) return;
    feed_set(f, p, d, n);
}

__device__ __forceinline__ void feed_w(const Feed &f, const Product &p, const Division &d, unsigned stage)
{
    if (f.at.item >= d.items) return;
    int apart = p.gated ? 8 : 16, left = f.left;
    const bf16 *w = f.w;
    size_t step = (size_t)apart * f.ld;
    unsigned to = stage + (threadIdx.x >> 7) * TILE_BYTES + piece_at(threadIdx.x >> 3 & 15, threadIdx.x & 7);
#pragma unroll 1
    for (int n = step_end(f.at, p, d) - f.at.chunk; n > 0; n--, w += CHUNK, left -= CHUNK, to += d.sides * TILE_BYTES) {
        const bf16 *from = w;
#pragma unroll
        for (int i = 0; i < TILE / 16; i++, from += step)
            stream16(to + i * (16 * ROW_BYTES), from, left > 0 && i * apart < f.outputs);
    }
}

template <int N> __device__ __forceinline__ void feed_x(const Feed &f, const Product &p, const Division &d, unsigned stage)
{
    if (f.at.item >= d.items) return;
    int first = threadIdx.x >> 3, apart = blockDim.x >> 3, left = f.left;
    const bf16 *x = f.x;
    unsigned to = stage + d.deep * d.sides * TILE_BYTES;
#pragma unroll 1
    for (int n = step_end(f.at, p, d) - f.at.chunk; n > 0; n--, x += CHUNK, left -= CHUNK, to += N * ROW_BYTES)
#pragma unroll 1
        for (int row = first; row < N; row += apart) {
            bool there = left > 0 && row - first < f.rows;
            copy16(to + piece_at(row, threadIdx.x & 7), x + (size_t)(row - first) * f.ld, there ? 16 : 0);
        }
}

/* ---- tensor cores: c[block of 8 rows of x][4], as attention.cuh has them ---- */

#define QUADS_2(c, i) QUAD(c, i), QUAD(c, i + 1)
#define WGMMA_ROWS(n, slots, a, b, p, ...)                                                                            \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " p ", 0; wgmma.mma_async.sync.aligned.m64n" n                       \
                 "k16.f32.bf16.bf16 {" slots "}, " a ", " b ", p, 1, 1, 0, 0; }" : __VA_ARGS__ : "l"(left), "l"(right), "r"(add))

__device__ __forceinline__ void wgmma_rows(float (&c)[1][4], unsigned long long left, unsigned long long right, int add)
{
    WGMMA_ROWS("8", "%0, %1, %2, %3", "%4", "%5", "%6", QUAD(c, 0));
}

__device__ __forceinline__ void wgmma_rows(float (&c)[2][4], unsigned long long left, unsigned long long right, int add)
{
    WGMMA_ROWS("16", "%0, %1, %2, %3, %4, %5, %6, %7", "%8", "%9", "%10", QUADS_2(c, 0));
}

__device__ __forceinline__ void wgmma_rows(float (&c)[4][4], unsigned long long left, unsigned long long right, int add)
{
    WGMMA_ROWS("32", "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15", "%16", "%17", "%18", QUADS_4(c, 0));
}

/* c += a tile by rows of x, CHUNK columns of both. */
template <int N> __device__ __forceinline__ void multiply(float (&c)[1][N / 8][4], unsigned w, unsigned x)
{
    if constexpr (GROUPED) {
        unsigned left = matrix_at(w, 0), right = matrix_at(x, 0);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < CHUNK / 16; k++) wgmma_rows(c[0], descriptor(left + 2 * k), descriptor(right + 2 * k), 1);
    } else {
        int lane = threadIdx.x & 31, row = (threadIdx.x >> 5 & 3) * 16 + (lane & 15);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            unsigned a[2][4], b[4];
            load_fragments(a[0], w + piece_at(row, 4 * h + (lane >> 4)));
            load_fragments(a[1], w + piece_at(row, 4 * h + 2 + (lane >> 4)));
#pragma unroll
            for (int j = 0; j < N / 8; j++) {
                load_fragments(b, x + piece_at(8 * j + (lane & 7), 4 * h + (lane >> 3)));
                mma(c[0][j], a[0], b[0], b[1]);
                mma(c[0][j], a[1], b[2], b[3]);
            }
        }
    }
}

/* What multiply() began is in c. */
template <int N> __device__ __forceinline__ void multiply_end(float (&c)[1][N / 8][4])
{
    if constexpr (GROUPED) {
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        pin(c);
    }
}

/* The adapter's sums, and the bias under them. */
template <int N>
__device__ __forceinline__ void adapter_end(float (&c)[1][N / 8][4], const Product &p, const Division &d, const At &a)
{
    int tile = a.group * d.sides + (threadIdx.x >> 7);
    int column = tile * TILE + 16 * (threadIdx.x >> 5 & 3) + ((threadIdx.x & 31) >> 2);
    float first = p.bias && column < p.n ? wide(p.bias[column]) : 0;
    float second = p.bias && column + 8 < p.n ? wide(p.bias[column + 8]) : 0;
#pragma unroll
    for (int j = 0; j < N / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) c[0][j][e] = rounded(rounded(c[0][j][e]) + (e < 2 ? first : second));
}

template <int N>
__device__ __forceinline__ void multiply_step(float (&c)[1][N / 8][4], const Product &p, const Division &d, const At &a,
                                              unsigned stage)
{
    unsigned w = stage + (threadIdx.x >> 7) * TILE_BYTES, x = stage + d.deep * d.sides * TILE_BYTES;
    int last = step_end(a, p, d);
    if constexpr (GROUPED) pin(c);
#pragma unroll 1
    for (int i = a.chunk; i < last; i++, w += d.sides * TILE_BYTES, x += N * ROW_BYTES) multiply<N>(c, w, x);
    multiply_end<N>(c);
    if (p.rounds && last == p.r / CHUNK) adapter_end<N>(c, p, d, a);
}

/* The sums of an item, which become 0. */
template <int N> __device__ __forceinline__ void put(const Product &p, const Division &d, const At &a, float (&c)[1][N / 8][4])
{
    int warp = threadIdx.x >> 5 & 3, g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
    int tile = a.group * d.sides + (threadIdx.x >> 7);
    int column = p.gated ? tile * (TILE / 2) + 8 * warp + g : tile * TILE + 16 * warp + g;
#pragma unroll
    for (int j = 0; j < N / 8; j++) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            int row = a.row_block * N + 8 * j + 2 * t + e;
            float first = c[0][j][e], second = c[0][j][e + 2];
            if (row >= p.rows) continue;
            if (p.gated) {
                float gate = rounded(first), up = rounded(second);
                if (column < p.n) ((bf16 *)p.out)[(size_t)row * p.n + column] = narrow(rounded(gate * sigmoid(gate)) * up);
            } else {
                float *to = p.out + ((size_t)a.split * p.rows + row) * p.n + column;
                if (column < p.n) to[0] = first;
                if (column + 8 < p.n) to[8] = second;
            }
        }
        c[0][j][0] = c[0][j][1] = c[0][j][2] = c[0][j][3] = 0;
    }
}

/* Blocks of 128 threads a side, as many as there are items or places. Shared memory: STAGES stages. w does not wait for the
 * kernel before, which writes x: at the start every stage has its w on the way. */
template <int N> __device__ __forceinline__ void product(const Product &p, const Division &d)
{
    extern __shared__ __align__(1024) unsigned char ring[];
    unsigned base = shared_address(ring), size = d.deep * (d.sides * TILE_BYTES + N * ROW_BYTES);
    float c[1][N / 8][4];
    At at;
    Feed in;
    next_may_start();
    feed_begin(in, p, d, N);
#pragma unroll 1
    for (int s = 0; s < STAGES; s++, feed_on(in, p, d, N)) feed_w(in, p, d, base + s * size);
    previous_done();
    feed_begin(in, p, d, N);
    at = in.at;
#pragma unroll 1
    for (int s = 0; s < STAGES; s++, feed_on(in, p, d, N)) {
        feed_x<N>(in, p, d, base + s * size);
        stage_commit();
    }
#pragma unroll
    for (int j = 0; j < N / 8; j++) c[0][j][0] = c[0][j][1] = c[0][j][2] = c[0][j][3] = 0;
    unsigned here = base, before = ~0u, ends = base + STAGES * size;
#pragma unroll 1
    while (at.item < d.items) {
        stage_wait<STAGES - 2>();
        __syncthreads(); /* and everyone is done with the stage before */
        if (before != ~0u) {
            feed_w(in, p, d, before);
            feed_x<N>(in, p, d, before);
            stage_commit();
            feed_on(in, p, d, N);
        }
        multiply_step<N>(c, p, d, at, here);
        at.chunk = step_end(at, p, d);
        if (at.chunk >= at.end) {
            put<N>(p, d, at, c);
            item_begin(at, p, d, at.item + gridDim.x);
        }
        before = here;
        here = here + size == ends ? base : here + size;
    }
    stage_wait<0>();
}

extern "C" __global__ void __launch_bounds__(THREADS) product8(Product p, Division d) { product<8>(p, d); }
extern "C" __global__ void __launch_bounds__(THREADS) product16(Product p, Division d) { product<16>(p, d); }
extern "C" __global__ void __launch_bounds__(THREADS) product32(Product p, Division d) { product<32>(p, d); }
extern "C" __global__ void __launch_bounds__(THREADS) product64(Product p, Division d) { product<64>(p, d); }

/* ---- between the products: x = x + the sums of a product, or a row of the embeddings; its norm. A block has a row. x is
 * fp32 and never rounded: what it was is there to the end, as in the full pass. ---- */

struct Residual {
    float *x;
    bf16 *normed;
    const float *sums;     /* [splits][rows][n] */
    int splits;            /* 0: x is read from the table */
    const bf16 *table;
    const int *ids;
    const bf16 *w;
    int rows, n;           /* n: a multiple of 8 */
    float eps;
};

/* Shared memory: n floats, n bf16. Each thread reads only what it put there itself. */
extern "C" __global__ void __launch_bounds__(512) residual_norm(Residual r)
{
    extern __shared__ uint4 room[];
    __shared__ float scratch[64];
    float *row = (float *)room;
    uint4 *weights = (uint4 *)(row + r.n);
    size_t at = (size_t)blockIdx.x * r.n, plane = (size_t)r.rows * r.n;
    float *x = r.x + at;
    next_may_start();
    for (int i = threadIdx.x * 8; i < r.n; i += blockDim.x * 8) weights[i / 8] = *(const uint4 *)(r.w + i);
    previous_done();
    float squares = 0, unused = 0;
    for (int i = threadIdx.x * 8; i < r.n; i += blockDim.x * 8) {
        float v[8], sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        if (r.splits) {
            float4 a = *(const float4 *)(x + i), b = *(const float4 *)(x + i + 4);
            v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
        } else unpack8(v, *(const uint4 *)(r.table + (size_t)r.ids[blockIdx.x] * r.n + i));
#pragma unroll 8
        for (int s = 0; s < r.splits; s++) {
            const float4 *p = (const float4 *)(r.sums + s * plane + at + i);
            float4 a = p[0], b = p[1];
            sum[0] += a.x, sum[1] += a.y, sum[2] += a.z, sum[3] += a.w, sum[4] += b.x, sum[5] += b.y, sum[6] += b.z, sum[7] += b.w;
        }
#pragma unroll
        for (int j = 0; j < 8; j++) v[j] += sum[j], row[i + j] = v[j], squares += v[j] * v[j];
        *(float4 *)(x + i) = make_float4(v[0], v[1], v[2], v[3]);
        *(float4 *)(x + i + 4) = make_float4(v[4], v[5], v[6], v[7]);
    }
    block_sums(squares, unused, scratch);
    float scale = rsqrtf(squares / (float)r.n + r.eps);
    for (int i = threadIdx.x * 8; i < r.n; i += blockDim.x * 8) {
        float v[8], w[8];
        unpack8(w, weights[i / 8]);
#pragma unroll
        for (int j = 0; j < 8; j++) v[j] = rounded(row[i + j] * scale) * w[j];
        *(uint4 *)(r.normed + at + i) = pack8(v);
    }
}

/* An adapter's x A^T, summed over the parts of k and scaled: [rows][r]. */
extern "C" __global__ void __launch_bounds__(256)
    adapter_low(bf16 *low, const float *sums, int splits, int rows, int r, float scale)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    next_may_start();
    previous_done();
    if (i >= rows * r) return;
    float v = 0;
#pragma unroll 8
    for (int s = 0; s < splits; s++) v += sums[(size_t)s * rows * r + i];
    low[i] = narrow(v * scale);
}

/* B of some outputs, [n][rank], into its columns of [.., r] for all outputs of a product. */
extern "C" __global__ void __launch_bounds__(256) adapter_up(bf16 *up, const bf16 *b, int first, int n, int rank, int r, int column)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (size_t)n * rank) up[(first + i / rank) * r + column + i % rank] = b[i];
}
