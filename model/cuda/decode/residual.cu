/* Between the products of a decoding step: x = x + the sums of a product, or a row of the
 * embeddings, and the norm of x, equal to norm.cu bit for bit. x is fp32 and is not rounded, as in
 * the full pass. */
#include "overlap.cuh"
#include "row.cuh"

struct Residual {
    float *x;
    bf16 *normed;
    const float *sums; /* [planes][rows][n] */
    int planes;        /* 0: x is read from the table; at most 2 */
    const bf16 *table;
    const int *ids;
    const bf16 *w;
    int rows, n; /* n: a multiple of 8 */
    float eps;
};

__device__ __forceinline__ uint4 plus(uint4 a, uint4 b)
{
    return make_uint4(__float_as_uint(__uint_as_float(a.x) + __uint_as_float(b.x)),
                      __float_as_uint(__uint_as_float(a.y) + __uint_as_float(b.y)),
                      __float_as_uint(__uint_as_float(a.z) + __uint_as_float(b.z)),
                      __float_as_uint(__uint_as_float(a.w) + __uint_as_float(b.w)));
}

/* A row per block, with V loads per thread of `threads`. here: n, or 0 for a thread without a part
 * of the row. join(sum) adds the sums of the threads. The weights are read before the previous
 * kernel ends. */
template <int V, class Join>
__device__ __forceinline__ void residual_norm(const Residual &r, int threads, int here, Join join)
{
    int first = 4 * threadIdx.x, step = 4 * threads;
    size_t at = (size_t)blockIdx.x * r.n + first;
    float *x = r.x + at;
    uint4 v[V];
    uint2 weight[V];
    next_may_start();
#pragma unroll
    for (int k = 0; k < V; k++)
        get<true>(weight[k], r.w + first + k * step, here - first - k * step);
    previous_done();
    if (r.planes) {
        uint4 a[V], b[V];
        const float *sums = r.sums + at, *more = sums + (size_t)r.rows * r.n;
#pragma unroll
        for (int k = 0; k < V; k++) get<true>(v[k], x + k * step, here - first - k * step);
#pragma unroll
        for (int k = 0; k < V; k++) get<true>(a[k], sums + k * step, here - first - k * step);
        if (r.planes > 1) {
#pragma unroll
            for (int k = 0; k < V; k++) get<true>(b[k], more + k * step, here - first - k * step);
#pragma unroll
            for (int k = 0; k < V; k++) v[k] = plus(plus(v[k], a[k]), b[k]);
        } else {
#pragma unroll
            for (int k = 0; k < V; k++) v[k] = plus(v[k], a[k]);
        }
    } else {
        const bf16 *from = r.table + (size_t)r.ids[blockIdx.x] * r.n + first;
#pragma unroll
        for (int k = 0; k < V; k++) {
            uint2 half;
            get<true>(half, from + k * step, here - first - k * step);
            v[k] =
                make_uint4(half.x << 16, half.x & 0xffff0000u, half.y << 16, half.y & 0xffff0000u);
        }
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < V; k++) {
        if (here > first + k * step) *(uint4 *)(x + k * step) = v[k];
        sum += squares<float>(v[k]);
    }
    float inverse = inverse_root(join(sum), r.n, r.eps);
#pragma unroll
    for (int k = 0; k < V; k++)
        put<true>(r.normed + at + k * step, scaled<float>(v[k], weight[k], inverse),
                  here - first - k * step);
}

/* A row for a team of lanes of the block's only warp. */
extern "C" __global__ void __launch_bounds__(32) residual_norm_team(Residual r, int lanes)
{
    residual_norm<TEAM_NUMBERS / 4>(r, lanes, threadIdx.x < lanes ? r.n : 0,
                                    [=](float sum) { return warp_sum(sum, lanes); });
}

/* A row for the block. */
extern "C" __global__ void __launch_bounds__(1024) residual_norm_block(Residual r)
{
    __shared__ float shared[64];
    residual_norm<BLOCK_NUMBERS / 4>(r, blockDim.x, r.n, [&](float sum) {
        float none = 0;
        block_sums(sum, none, shared);
        return sum;
    });
}
