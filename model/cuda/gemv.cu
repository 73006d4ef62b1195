/* Products of few rows, y[rows, n] = x[rows, k] w[n, k]^T: bound by the reading of w, 16 bytes a load, each byte once for up to
 * 64 rows. On the tensor cores with w as their left operand, so that one row costs no more than eight.
 *
 * A row's result does not depend on the rows beside it: n and k alone say how k is cut into slices and in what order an
 * element's products are summed, and the columns of a matrix instruction do not see each other. */
#include "decode.cuh"

constexpr int CHUNK = 64;  /* numbers of k that a warp works on at a time: 128 bytes of each row of w */
constexpr int TILE = 32;   /* outputs of a warp */
constexpr int SLICES = 2;  /* warps of a block that share outputs, each with its slice of k */
constexpr int STAGES = 2;

struct Product {
    float *out;            /* [splits][rows][n], sums of a part of k each; gated: act, bf16 [rows][n] */
    const bf16 *x, *w;     /* [rows][k]; [n][k], gated: [2 n][k], gates first */
    const bf16 *low, *up;  /* an adapter's [rows][r] and [n][r] ([2 n][r]): r more columns of x and w */
    int rows, n, k, r, splits, gated; /* k: a multiple of 8; r: of CHUNK */
};

/* What a warp reads: its rows of w, its chunks of k. */
struct Work {
    int row[4];            /* of w: the lane's, 8 rows apart in a tile */
    int begin, count;      /* chunks */
    int most;              /* count of the block's longest slice */
    int slice, side, sides;
};

__device__ __forceinline__ Work work_of(const Product &p)
{
    Work w;
    int warp = threadIdx.x >> 5, g = (threadIdx.x & 31) >> 2;
    w.slice = warp % SLICES, w.side = warp / SLICES, w.sides = blockDim.x / (32 * SLICES);
    int tile = blockIdx.y * w.sides + w.side, each = p.gated ? TILE / 2 : TILE;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int at = tile * each + 8 * (p.gated ? i % 2 : i) + g;
        at = at < p.n ? at : p.n - 1;
        w.row[i] = p.gated && i >= 2 ? p.n + at : at;
    }
    unsigned chunks = (p.k + CHUNK - 1) / CHUNK + p.r / CHUNK, parts = p.splits * SLICES;
    w.most = 0;
#pragma unroll
    for (int s = 0; s < SLICES; s++) {
        unsigned part = blockIdx.z * SLICES + s;
        int begin = part * chunks / parts, end = (part + 1) * chunks / parts;
        if (s == w.slice) w.begin = begin, w.count = end - begin;
        w.most = max(w.most, end - begin);
    }
    return w;
}

/* A lane copies what it will itself multiply: no thread waits for another's piece of w. */
__device__ __forceinline__ void load_w(const Product &p, const Work &work, uint4 *stage, int chunk)
{
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, of_w = (p.k + CHUNK - 1) / CHUNK;
    const bf16 *from = chunk < of_w ? p.w : p.up;
    int ld = chunk < of_w ? p.k : p.r, first = (chunk < of_w ? chunk : chunk - of_w) * CHUNK + 8 * (lane & 3);
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int at = first + 32 * h;
            bool there = at < ld;
            stream16(&stage[(warp * 8 + 2 * i + h) * 32 + lane], from + (there ? (size_t)work.row[i] * ld + at : 0), there);
        }
}

/* x of a slice, [8 T rows][8 pieces of 16 bytes]: by the warps that read it. Odd rows have their halves swapped, so that the
 * eight lanes that read at a time meet no bank twice. */
template <int T> __device__ __forceinline__ void load_x(const Product &p, const Work &work, uint4 *stage, int chunk)
{
    int of_w = (p.k + CHUNK - 1) / CHUNK, first_row = blockIdx.x * 8 * T;
    const bf16 *from = chunk < of_w ? p.x : p.low;
    int ld = chunk < of_w ? p.k : p.r, first = (chunk < of_w ? chunk : chunk - of_w) * CHUNK;
    for (int i = work.side * 32 + (threadIdx.x & 31); i < 8 * T * 8; i += work.sides * 32) {
        int row = i >> 3, piece = i & 7, at = first + 8 * piece;
        bool there = first_row + row < p.rows && at < ld;
        copy16(&stage[(work.slice * 8 * T + row) * 8 + (piece ^ (row & 1) << 2)],
               from + (there ? (size_t)(first_row + row) * ld + at : 0), there);
    }
}

/* Lane (g, t) has numbers 8 t to 8 t + 7 of each 32 of its rows: k in another order than the instruction's, the same in
 * both operands. */
template <int T> __device__ __forceinline__ void multiply(float (&acc)[2][T][4], const Work &work, const uint4 *w, const uint4 *x)
{
    constexpr int halves = T == 8 ? 1 : 2; /* at a time: registers */
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
#pragma unroll halves
    for (int h = 0; h < 2; h++) {
        uint4 a[4];
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = w[(warp * 8 + 2 * i + h) * 32 + lane];
#pragma unroll
        for (int j = 0; j < T; j++) {
            uint4 b = x[(work.slice * 8 * T + 8 * j + g) * 8 + ((4 * h + t) ^ (g & 1) << 2)];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                mma(acc[i][j], a[2 * i].x, a[2 * i + 1].x, a[2 * i].y, a[2 * i + 1].y, b.x, b.y);
                mma(acc[i][j], a[2 * i].z, a[2 * i + 1].z, a[2 * i].w, a[2 * i + 1].w, b.z, b.w);
            }
        }
    }
}

/* The slices' sums meet in shared memory, [slice][row][output], and are added in their order. */
template <int T> __device__ __forceinline__ void finish(const Product &p, const Work &work, float (&acc)[2][T][4], float *sums)
{
    int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, wide = work.sides * TILE, ld = wide + 4;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < T; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int row = 8 * j + 2 * t + (e & 1), at = work.side * TILE + 16 * i + 8 * (e >> 1) + g;
                sums[(work.slice * 8 * T + row) * ld + at] = acc[i][j][e];
            }
    __syncthreads();
    int first_row = blockIdx.x * 8 * T, rows = min(8 * T, p.rows - first_row), each = p.gated ? wide / 2 : wide;
    for (int i = threadIdx.x; i < rows * each; i += blockDim.x) {
        int row = i / each, at = i % each, column = blockIdx.y * each + at;
        if (column >= p.n) continue;
        const float *s = sums + row * ld + (p.gated ? at / 16 * TILE + at % 16 : at);
        float v = s[0] + s[8 * T * ld];
        if (p.gated) {
            float gate = rounded(v), up = rounded(s[16] + s[8 * T * ld + 16]);
            ((bf16 *)p.out)[(size_t)(first_row + row) * p.n + column] = narrow(rounded(gate * sigmoid(gate)) * up);
        } else p.out[((size_t)blockIdx.z * p.rows + first_row + row) * p.n + column] = v;
    }
}

/* Blocks: (rows / 8 T, outputs, splits). Shared memory: STAGES times 4 KiB a warp and 2 T KiB of x; never less than the sums. */
template <int T> __device__ __forceinline__ void product(const Product &p)
{
    extern __shared__ uint4 ring[];
    Work work = work_of(p);
    int of_w = (blockDim.x >> 5) * 8 * 32, stage = of_w + SLICES * 8 * T * 8;
    float acc[2][T][4];
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < T; j++) acc[i][j][0] = acc[i][j][1] = acc[i][j][2] = acc[i][j][3] = 0;
    next_may_start();
#pragma unroll
    for (int s = 0; s < STAGES; s++)
        if (s < work.count) load_w(p, work, ring + s * stage, work.begin + s); /* nothing before it writes w */
    previous_done();
#pragma unroll
    for (int s = 0; s < STAGES; s++) {
        if (s < work.count) load_x<T>(p, work, ring + s * stage + of_w, work.begin + s);
        copies_commit();
    }
    for (int i = 0; i < work.most; i++) {
        uint4 *here = ring + i % STAGES * stage;
        copies_wait<STAGES - 1>();
        __syncthreads();
        if (i < work.count) multiply<T>(acc, work, here, here + of_w);
        __syncthreads();
        if (i + STAGES < work.count) {
            load_w(p, work, here, work.begin + i + STAGES);
            load_x<T>(p, work, here + of_w, work.begin + i + STAGES);
        }
        copies_commit();
    }
    copies_wait<0>();
    __syncthreads();
    finish<T>(p, work, acc, (float *)ring);
}

extern "C" __global__ void __launch_bounds__(256, 2) product8(Product p) { product<1>(p); }
extern "C" __global__ void __launch_bounds__(256, 2) product16(Product p) { product<2>(p); }
extern "C" __global__ void __launch_bounds__(256, 2) product32(Product p) { product<4>(p); }
extern "C" __global__ void __launch_bounds__(256, 2) product64(Product p) { product<8>(p); }

/* ---- between the products: x = x + the sums of a product, or a row of the embeddings; its norm. A block has a row. ---- */

struct Residual {
    bf16 *x, *normed;
    const float *sums;     /* [splits][rows][n] */
    int splits;            /* 0: x is read from the table */
    const bf16 *table;
    const int *ids;
    const bf16 *w;
    int rows, n;           /* n: a multiple of 8 */
    float eps;
};

/* Shared memory: n floats. */
extern "C" __global__ void __launch_bounds__(512) residual_norm(Residual r)
{
    extern __shared__ float row[];
    __shared__ float scratch[64];
    size_t at = (size_t)blockIdx.x * r.n, plane = (size_t)r.rows * r.n;
    next_may_start();
    previous_done();
    const bf16 *from = r.splits ? r.x + at : r.table + (size_t)r.ids[blockIdx.x] * r.n;
    float squares = 0, unused = 0;
    for (int i = threadIdx.x * 8; i < r.n; i += blockDim.x * 8) {
        float v[8], sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        uint4 old = *(const uint4 *)(from + i);
#pragma unroll 8
        for (int s = 0; s < r.splits; s++) {
            const float4 *p = (const float4 *)(r.sums + s * plane + at + i);
            float4 a = p[0], b = p[1];
            sum[0] += a.x, sum[1] += a.y, sum[2] += a.z, sum[3] += a.w, sum[4] += b.x, sum[5] += b.y, sum[6] += b.z, sum[7] += b.w;
        }
        unpack8(v, old);
#pragma unroll
        for (int j = 0; j < 8; j++) v[j] = rounded(sum[j] + v[j]);
        *(uint4 *)(r.x + at + i) = pack8(v);
#pragma unroll
        for (int j = 0; j < 8; j++) row[i + j] = v[j], squares += v[j] * v[j];
    }
    block_sums(squares, unused, scratch);
    float scale = rsqrtf(squares / (float)r.n + r.eps);
    for (int i = threadIdx.x * 8; i < r.n; i += blockDim.x * 8) {
        float v[8], w[8];
        unpack8(w, *(const uint4 *)(r.w + i));
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
    for (int s = 0; s < splits; s++) v += sums[(size_t)s * rows * r + i];
    low[i] = narrow(v * scale);
}

/* B of some outputs, [n][rank], into its columns of [.., r] for all outputs of a product. */
extern "C" __global__ void __launch_bounds__(256) adapter_up(bf16 *up, const bf16 *b, int first, int n, int rank, int r, int column)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < (size_t)n * rank) up[(first + i / rank) * r + column + i % rank] = b[i];
}
