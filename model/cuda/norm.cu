/* RMSNorm and its gradient, over rows of the residual stream, which is float, and over the heads of
 * a row, which are bf16. Short vectors (up to 1024 numbers) have a team of lanes of one warp, long
 * ones a block. x is read once and stays in registers during the sum of its squares.
 *
 *    y  = bf16(x r) w,  r = (mean(x^2) + eps)^-1/2      rounded between the two, as transformers does
 *    dx = r g - x r^3 mean(g x),  g = dy w;      dw = sum of dy x r */
#include "row.cuh"

/* The position of vector v of a tensor with `groups` vectors of n at the start of each row. move()
 * steps to another vector without a division. */
struct Place {
    unsigned row, group;

    __device__ __forceinline__ Place(unsigned v, unsigned groups)
        : row(v / groups), group(v - v / groups * groups)
    {
    }
    __device__ __forceinline__ size_t at(int n, int ld) const
    {
        return (size_t)row * ld + (size_t)group * n;
    }
    __device__ __forceinline__ void move(Place by, unsigned groups)
    {
        row += by.row, group += by.group;
        if (group >= groups) row++, group -= groups;
    }
};

/* ---- forward ---- */

/* A team of `lanes` lanes per vector, with V loads of x per lane. Each team takes U vectors, and
 * the teams of a block take adjacent ones. */
template <class X, int V, int U>
__device__ __forceinline__ void norm_team(bf16 *y, const X *x, const bf16 *w, unsigned count,
                                          int groups, int n, int ld, float eps, int lanes)
{
    constexpr int N = Load<X>::N;
    unsigned teams = blockDim.x / lanes, team = threadIdx.x / lanes;
    int first = (threadIdx.x & (lanes - 1)) * N, step = lanes * N;
    uint4 in[U][V];
    size_t at[U];
    int here[U];
    unsigned v = blockIdx.x * U * teams + team;
    Place place(v, groups), next(teams, groups);
#pragma unroll
    for (int u = 0; u < U; u++, v += teams, place.move(next, groups)) {
        here[u] = v < count ? n : 0;
        at[u] = place.at(n, ld);
#pragma unroll
        for (int k = 0; k < V; k++)
            get<true>(in[u][k], x + at[u] + first + k * step, here[u] - first - k * step);
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < V; k++) sum += squares<X>(in[u][k]);
        float inverse = inverse_root(warp_sum(sum, lanes), n, eps);
#pragma unroll
        for (int k = 0; k < V; k++) {
            int i = first + k * step;
            typename Load<X>::Halves weight;
            get<true>(weight, w + i, n - i);
            put<true>(y + at[u] + i, scaled<X>(in[u][k], weight, inverse), here[u] - i);
        }
    }
}

/* NUMBERS: per lane */
#define TEAM(name, X, NUMBERS, U)                                                           \
    extern "C" __global__ void __launch_bounds__(256)                                       \
        name(bf16 *y, const X *x, const bf16 *w, unsigned count, int groups, int n, int ld, \
             float eps, int lanes)                                                          \
    {                                                                                       \
        norm_team<X, NUMBERS / Load<X>::N, U>(y, x, w, count, groups, n, ld, eps,           \
                                              NUMBERS > 8 ? 32 : lanes);                    \
    }
TEAM(head_norm_team, bf16, 8, 4)
TEAM(rmsnorm_team1, float, 8, 4)
TEAM(rmsnorm_team4, float, TEAM_NUMBERS, 1)

/* A block per vector, with V loads of x per thread. */
template <class X, int V, bool WIDE>
__device__ __forceinline__ void norm_block(bf16 *y, const X *x, const bf16 *w, int groups, int n,
                                           int ld, float eps)
{
    __shared__ float shared[64];
    size_t at = Place(blockIdx.x, groups).at(n, ld);
    int first = threadIdx.x * Load<X>::N, step = blockDim.x * Load<X>::N;
    uint4 in[V];
    typename Load<X>::Halves weight[V];
    float sum = 0, none = 0;
#pragma unroll
    for (int k = 0; k < V; k++) get<WIDE>(in[k], x + at + first + k * step, n - first - k * step);
#pragma unroll
    for (int k = 0; k < V; k++) get<WIDE>(weight[k], w + first + k * step, n - first - k * step);
#pragma unroll
    for (int k = 0; k < V; k++) sum += squares<X>(in[k]);
    block_sums(sum, none, shared);
    float inverse = inverse_root(sum, n, eps);
#pragma unroll
    for (int k = 0; k < V; k++) {
        int i = first + k * step;
        put<WIDE>(y + at + i, scaled<X>(in[k], weight[k], inverse), n - i);
    }
}

/* NUMBERS: per thread */
#define BLOCK(name, X, NUMBERS, WIDE)                                                  \
    extern "C" __global__ void __launch_bounds__(1024)                                 \
        name(bf16 *y, const X *x, const bf16 *w, int groups, int n, int ld, float eps) \
    {                                                                                  \
        norm_block<X, NUMBERS / Load<X>::N, WIDE>(y, x, w, groups, n, ld, eps);        \
    }
BLOCK(rmsnorm_block, float, BLOCK_NUMBERS, true)
BLOCK(rmsnorm_any, float, 8, false) /* not aligned */
BLOCK(head_norm_any, bf16, 8, false)

/* ---- gradient ---- */

/* The numbers of one vector that a thread has. */
template <class X, int V> struct Piece {
    uint4 x[V];
    typename Load<X>::Halves dy[V], dx[V];
};

template <bool WIDE, class X, int V>
__device__ __forceinline__ void get_piece(Piece<X, V> &p, const bf16 *dx, int add, const bf16 *dy,
                                          const X *x, size_t at, int first, int step, int n)
{
#pragma unroll
    for (int k = 0; k < V; k++) {
        int i = first + k * step;
        get<WIDE>(p.x[k], x + at + i, n - i);
        get<WIDE>(p.dy[k], dy + at + i, n - i);
        get<WIDE>(p.dx[k], dx + at + i, add ? n - i : 0);
    }
}

/* Sums of x^2 and of dy w x. weights(k) returns the weights of load k. */
template <class X, int V, class Weights>
__device__ __forceinline__ void piece_sums(const Piece<X, V> &p, Weights weights, float &square,
                                           float &dot)
{
    square = dot = 0;
#pragma unroll
    for (int k = 0; k < V; k++) {
        auto w = weights(k);
        const unsigned *x = (const unsigned *)&p.x[k], *d = (const unsigned *)&p.dy[k],
                       *g = (const unsigned *)&w;
#pragma unroll
        for (int i = 0; i < Load<X>::N; i++) {
            float f = number<X>(x, i);
            square += f * f, dot += number<bf16>(d, i) * number<bf16>(g, i) * f;
        }
    }
}

__device__ __forceinline__ void stay_packed(uint2 &v)
{
    asm("" : "+r"(v.x), "+r"(v.y));
}

/* Store dx. more(k, quad, terms) receives the terms of dw of four numbers of load k. Two numbers
 * are unpacked at a time, because unpacked numbers take twice the registers. */
template <bool WIDE, class X, int V, class Weights, class More>
__device__ __forceinline__ void put_piece(bf16 *dx, Piece<X, V> &p, Weights weights, float square,
                                          float dot, float eps, size_t at, int first, int step,
                                          int n, int here, More more)
{
    float inverse = inverse_root(square, n, eps), back = dot / n * inverse * inverse * inverse;
    auto slope = [=](float x, float d, float g, float before, float &term) {
        d *= inverse;
        term = d * x;
        return before + d * g - x * back;
    };
#pragma unroll
    for (int k = 0; k < V; k++) {
        if (V > 1) stay_packed(p.x[k]), stay_packed(p.dy[k]);
        auto w = weights(k);
        auto result = p.dx[k];
        const unsigned *x = (const unsigned *)&p.x[k], *d = (const unsigned *)&p.dy[k],
                       *g = (const unsigned *)&w;
        unsigned *out = (unsigned *)&result;
        float terms[4];
#pragma unroll
        for (int j = 0; j < Load<X>::N / 2; j++) {
            float low = slope(number<X>(x, 2 * j), low_half(d[j]), low_half(g[j]), low_half(out[j]),
                              terms[j % 2 * 2]);
            float high = slope(number<X>(x, 2 * j + 1), high_half(d[j]), high_half(g[j]),
                               high_half(out[j]), terms[j % 2 * 2 + 1]);
            out[j] = pack2(low, high);
            if (j % 2) more(k, j / 2, make_float4(terms[0], terms[1], terms[2], terms[3]));
        }
        int i = first + k * step;
        put<WIDE>(dx + at + i, result, here - i);
    }
}

/* Block b has `each` vectors from b * each on and writes its sum for dw to row b of `parts` (NULL:
 * none). Each team accumulates in shared memory, [teams][n], which the block then adds up. */
template <class X, int V>
__device__ __forceinline__ void grad_team(bf16 *dx, int add, float *parts, const bf16 *dy,
                                          const X *x, const bf16 *w, unsigned count, unsigned each,
                                          int groups, int n, int ld, float eps, int lanes)
{
    extern __shared__ float columns[];
    constexpr int N = Load<X>::N;
    int teams = blockDim.x / lanes, team = threadIdx.x / lanes,
        first = (threadIdx.x & (lanes - 1)) * N, step = lanes * N;
    unsigned begin = blockIdx.x * each, end = begin + each < count ? begin + each : count;
    float4 *own = (float4 *)(columns + team * n + first);
    if (parts)
        for (int k = 0; k < V; k++)
            for (int quad = 0; quad < N / 4 && first + k * step < n; quad++)
                own[k * step / 4 + quad] = make_float4(0, 0, 0, 0);
    auto weights = [=](int k) { /* in the cache: all teams read them */
                                typename Load<X>::Halves v;
                                get<true>(v, w + first + k * step, n - first - k * step);
                                return v;
    };
    Place place(begin + team, groups), next(teams, groups);
    for (unsigned v = begin; v < end;
         /* all lanes of a warp have the same number of iterations */
         v += teams,
                  place.move(next, groups)) {
        int here = v + team < end ? n : 0;
        size_t at = place.at(n, ld);
        Piece<X, V> p;
        float square, dot;
        get_piece<true>(p, dx, add, dy, x, at, first, step, here);
        piece_sums(p, weights, square, dot);
        square = warp_sum(square, lanes), dot = warp_sum(dot, lanes);
        put_piece<true>(dx, p, weights, square, dot, eps, at, first, step, n, here,
                        [=](int k, int quad, float4 f) {
                            if (!parts || first + k * step >= here) return;
                            float4 &sum = own[k * step / 4 + quad];
                            sum = make_float4(sum.x + f.x, sum.y + f.y, sum.z + f.z, sum.w + f.w);
                        });
    }
    if (!parts) return;
    __syncthreads();
    for (int c = threadIdx.x; c < n; c += blockDim.x) {
        float sum = 0;
        for (int t = 0; t < teams; t++) sum += columns[t * n + c];
        parts[(size_t)blockIdx.x * n + c] = sum;
    }
}

#define GRAD_TEAM(name, X, NUMBERS, BLOCKS)                                                      \
    extern "C" __global__ void __launch_bounds__(256, BLOCKS)                                    \
        name(bf16 *dx, int add, float *parts, const bf16 *dy, const X *x, const bf16 *w,         \
             unsigned count, unsigned each, int groups, int n, int ld, float eps, int lanes)     \
    {                                                                                            \
        grad_team<X, NUMBERS / Load<X>::N>(dx, add, parts, dy, x, w, count, each, groups, n, ld, \
                                           eps, NUMBERS > 8 ? 32 : lanes);                       \
    }
GRAD_TEAM(head_norm_grad_team, bf16, 8, 5)
GRAD_TEAM(rmsnorm_grad_team1, float, 8, 5)
GRAD_TEAM(rmsnorm_grad_team4, float, TEAM_NUMBERS, 2)

/* The same with one vector at a time per block. */
template <class X, int V, bool WIDE>
__device__ __forceinline__ void grad_block(bf16 *dx, int add, float *parts, const bf16 *dy,
                                           const X *x, const bf16 *w, unsigned count, unsigned each,
                                           int groups, int n, int ld, float eps)
{
    __shared__ float shared[2][64]; /* alternating: one barrier per vector is enough */
    constexpr int N = Load<X>::N;
    int first = threadIdx.x * N, step = blockDim.x * N;
    unsigned begin = blockIdx.x * each, end = begin + each < count ? begin + each : count;
    float4 dw[V][N / 4] = {};
    auto weights = [=](int k) { /* in the cache, and registers are scarce */
                                typename Load<X>::Halves v;
                                get<WIDE>(v, w + first + k * step, n - first - k * step);
                                return v;
    };
    Place place(begin, groups), next(1, groups);
    for (unsigned v = begin; v < end; v++, place.move(next, groups)) {
        size_t at = place.at(n, ld);
        Piece<X, V> p;
        float square, dot;
        get_piece<WIDE>(p, dx, add, dy, x, at, first, step, n);
        piece_sums(p, weights, square, dot);
        block_sums(square, dot, shared[v & 1]);
        put_piece<WIDE>(dx, p, weights, square, dot, eps, at, first, step, n, n,
                        [&](int k, int quad, float4 f) {
                            float4 &sum = dw[k][quad];
                            sum = make_float4(sum.x + f.x, sum.y + f.y, sum.z + f.z, sum.w + f.w);
                        });
    }
    if (!parts) return;
#pragma unroll
    for (int k = 0; k < V; k++)
#pragma unroll
        for (int quad = 0; quad < N / 4; quad++) {
            int c = first + k * step + 4 * quad;
            float *to = parts + (size_t)blockIdx.x * n + c;
            if (c < n) to[0] = dw[k][quad].x;
            if (c + 1 < n) to[1] = dw[k][quad].y;
            if (c + 2 < n) to[2] = dw[k][quad].z;
            if (c + 3 < n) to[3] = dw[k][quad].w;
        }
}

#define GRAD_BLOCK(name, X, NUMBERS, WIDE)                                                       \
    extern "C" __global__ void __launch_bounds__(1024)                                           \
        name(bf16 *dx, int add, float *parts, const bf16 *dy, const X *x, const bf16 *w,         \
             unsigned count, unsigned each, int groups, int n, int ld, float eps)                \
    {                                                                                            \
        grad_block<X, NUMBERS / Load<X>::N, WIDE>(dx, add, parts, dy, x, w, count, each, groups, \
                                                  n, ld, eps);                                   \
    }
GRAD_BLOCK(rmsnorm_grad_block, float, BLOCK_NUMBERS, true)
GRAD_BLOCK(rmsnorm_grad_any, float, 8, false) /* not aligned */
GRAD_BLOCK(head_norm_grad_any, bf16, 8, false)
