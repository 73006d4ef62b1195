/* Sums over rows and over whole tensors. Shape alone determines the order of each sum: there are no
 * atomics. */
#include "engine.cuh"

constexpr int TILE = 256; /* columns of a warp: 8 per lane */

/* ---- to[n] += sum of the rows of parts: a warp has 32 columns of every 32nd row ---- */

extern "C" __global__ void __launch_bounds__(1024)
    sum_parts(float *to, const float *parts, unsigned count, int n)
{
    __shared__ float sums[32][33];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, column = blockIdx.x * 32 + lane;
    float sum = 0;
    if (column < n) {
#pragma unroll 4
        for (unsigned p = warp; p < count; p += 32) sum += parts[(size_t)p * n + column];
    }
    sums[warp][lane] = sum;
    __syncthreads();
    sum = warp_sum(sums[lane][warp]); /* warp w: column w */
    column = blockIdx.x * 32 + warp;
    if (lane == 0 && column < n) to[column] += sum;
}

/* ---- columns of dy: block (tile, part) sums `each` rows of 256 columns ---- */

/* acc += the rows first, first + step, ... before end. row(i) points to row i at this lane's
 * columns. */
template <bool WIDE, class Row>
__device__ __forceinline__ void add_rows(float (&acc)[8], Row row, int first, int end, int step,
                                         int left)
{
    constexpr int U = 4;
    for (int r = first; r < end; r += U * step) {
        uint4 v[U];
#pragma unroll
        for (int u = 0; u < U; u++)
            v[u] =
                r + u * step < end ? get8<WIDE>(row(r + u * step), left) : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int u = 0; u < U; u++) {
            float f[8];
            unpack8(f, v[u]);
#pragma unroll
            for (int i = 0; i < 8; i++) acc[i] += f[i];
        }
    }
}

/* Sum the accumulators of the W warps of a block for 256 columns. body(column, sum) is called once
 * per column. */
template <int W, class Body>
__device__ __forceinline__ void sum_warps(const float (&acc)[8], Body body)
{
    __shared__ float sums[W][TILE];
    float4 *mine = (float4 *)&sums[threadIdx.x >> 5][(threadIdx.x & 31) * 8];
    mine[0] = make_float4(acc[0], acc[1], acc[2], acc[3]),
    mine[1] = make_float4(acc[4], acc[5], acc[6], acc[7]);
    __syncthreads();
#pragma unroll
    for (int c = threadIdx.x; c < TILE; c += W * 32) {
        float sum = 0;
#pragma unroll
        for (int w = 0; w < W; w++) sum += sums[w][c];
        body(c, sum);
    }
}

extern "C" __global__ void __launch_bounds__(256)
    bias_columns(float *parts, const bf16 *dy, int rows, int n, int each, int aligned)
{
    int at = blockIdx.x * TILE + (threadIdx.x & 31) * 8,
        first = blockIdx.y * each + (threadIdx.x >> 5);
    int end = min((blockIdx.y + 1) * each, (unsigned)rows);
    float acc[8] = {};
    auto row = [=](int r) { return dy + (size_t)r * n + at; };
    if (aligned)
        add_rows<true>(acc, row, first, end, 8, n - at);
    else
        add_rows<false>(acc, row, first, end, 8, n - at);
    sum_warps<8>(acc, [=](int c, float sum) {
        int column = blockIdx.x * TILE + c;
        if (column < n) parts[(size_t)blockIdx.y * n + column] = sum;
    });
}

/* ---- dtable[id] += rows of dx with that id: block (run, tile) ---- */

extern "C" __global__ void __launch_bounds__(128)
    embed_runs(float *dtable, const bf16 *dx, const int *ids, const int *order, const int *run,
               int n, int aligned)
{
    int at = blockIdx.y * TILE + (threadIdx.x & 31) * 8, begin = run[blockIdx.x],
        end = run[blockIdx.x + 1];
    if (begin == end) return;
    float acc[8] = {};
    auto row = [=](int i) { return dx + (size_t)order[i] * n + at; };
    if (aligned)
        add_rows<true>(acc, row, begin + (threadIdx.x >> 5), end, 4, n - at);
    else
        add_rows<false>(acc, row, begin + (threadIdx.x >> 5), end, 4, n - at);
    float *to = dtable + (size_t)ids[order[begin]] * n;
    sum_warps<4>(acc, [=](int c, float sum) {
        int column = blockIdx.y * TILE + c;
        if (column < n) to[column] += sum;
    });
}

/* ---- squares ---- */

__device__ __forceinline__ double warp_sum_double(double v)
{
#pragma unroll
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
    return v;
}

/* The sum over a block of up to 1024 threads, in its first warp. */
__device__ __forceinline__ double block_sum_double(double v)
{
    __shared__ double sums[32];
    int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    v = warp_sum_double(v);
    if (lane == 0) sums[warp] = v;
    __syncthreads();
    return warp ? 0 : warp_sum_double(lane < (int)blockDim.x / 32 ? sums[lane] : 0);
}

constexpr int SQUARE_VECTORS = 16; /* of 4 numbers, per thread */

extern "C" __global__ void __launch_bounds__(256)
    squares(double *parts, const float *x, size_t n, int aligned)
{
    constexpr int V = SQUARE_VECTORS;
    size_t first = (size_t)blockIdx.x * 256 * V * 4 + threadIdx.x * 4;
    double sum = 0;
    if (aligned && (size_t)(blockIdx.x + 1) * 256 * V * 4 <= n) {
#pragma unroll 8
        for (int k = 0; k < V; k++) {
            float4 f = *(const float4 *)(x + first + k * 1024);
            sum += f.x * f.x + f.y * f.y + f.z * f.z + f.w * f.w;
        }
    } else {
        for (int k = 0; k < V; k++)
            for (size_t i = first + k * 1024; i < first + k * 1024 + 4 && i < n; i++)
                sum += (double)x[i] * x[i];
    }
    sum = block_sum_double(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

/* One block: parts[count] becomes the sum of the parts. */
extern "C" __global__ void __launch_bounds__(1024) sum_doubles(double *parts, unsigned count)
{
    double sum = 0;
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < count; i += 1024) sum += parts[i];
    sum = block_sum_double(sum);
    if (threadIdx.x == 0) parts[count] = sum;
}
