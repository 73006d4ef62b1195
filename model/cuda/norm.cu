/* RMSNorm and its gradient, over whole rows and over the heads of a row. Short vectors (up to 1024 numbers) belong to a team
 * of lanes of one warp, long ones to a block. x is read once: it waits in registers for the sum of its squares.
 *
 *     y  = bf16(x r) w,  r = (mean(x^2) + eps)^-1/2                        rounded between the two, as transformers does
 *     dx = r g - x r^3 mean(g x),  g = dy w;      dw = sum of dy x r
 */
#include "engine.cuh"

/* Where vector v of a tensor begins, `groups` vectors of n from the start of each row; and from it others, with no division. */
struct Place {
    unsigned row, group;

    __device__ __forceinline__ Place(unsigned v, unsigned groups) : row(v / groups), group(v - v / groups * groups) {}
    __device__ __forceinline__ size_t at(int n, int ld) const { return (size_t)row * ld + (size_t)group * n; }
    __device__ __forceinline__ void move(Place by, unsigned groups)
    {
        row += by.row, group += by.group;
        if (group >= groups) row++, group -= groups;
    }
};

__device__ __forceinline__ float squares(uint4 packed)
{
    float f[8], sum = 0;
    unpack8(f, packed);
#pragma unroll
    for (int i = 0; i < 8; i++) sum += f[i] * f[i];
    return sum;
}

__device__ __forceinline__ uint4 scaled(uint4 x, uint4 w, float inverse)
{
    float f[8];
    stay_packed(x);
    unpack8(f, x);
#pragma unroll
    for (int i = 0; i < 8; i++) f[i] *= inverse;
    return times8(pack8(f), w);
}

/* ---- forward ---- */

/* A team of `lanes` lanes has a vector, V times 8 numbers a lane; each takes U vectors, a block's teams side by side. */
template <int V, int U>
__device__ __forceinline__ void norm_team(bf16 *y, const bf16 *x, const bf16 *w, unsigned count, int groups, int n, int ld,
                                          float eps, int lanes)
{
    unsigned teams = blockDim.x / lanes, team = threadIdx.x / lanes;
    int first = (threadIdx.x & (lanes - 1)) * 8, step = lanes * 8;
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
        for (int k = 0; k < V; k++) in[u][k] = get8<true>(x + at[u] + first + k * step, here[u] - first - k * step);
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < V; k++) sum += squares(in[u][k]);
        float inverse = rsqrtf(warp_sum(sum, lanes) / n + eps);
#pragma unroll
        for (int k = 0; k < V; k++) {
            int i = first + k * step;
            put8<true>(y + at[u] + i, scaled(in[u][k], get8<true>(w + i, n - i), inverse), here[u] - i);
        }
    }
}

#define TEAM(name, V, U)                                                                                             \
    extern "C" __global__ void __launch_bounds__(256)                                                                \
        name(bf16 *y, const bf16 *x, const bf16 *w, unsigned count, int groups, int n, int ld, float eps, int lanes) \
    {                                                                                                                \
        norm_team<V, U>(y, x, w, count, groups, n, ld, eps, V > 1 ? 32 : lanes);                                     \
    }
TEAM(rmsnorm_team1, 1, 4)
TEAM(rmsnorm_team4, 4, 1)

/* A block has a vector, V times 8 numbers a thread. */
template <int V, bool WIDE>
__device__ __forceinline__ void norm_block(bf16 *y, const bf16 *x, const bf16 *w, int groups, int n, int ld, float eps)
{
    __shared__ float shared[64];
    size_t at = Place(blockIdx.x, groups).at(n, ld);
    int first = threadIdx.x * 8, step = blockDim.x * 8;
    uint4 in[V], weight[V];
    float sum = 0, none = 0;
#pragma unroll
    for (int k = 0; k < V; k++) in[k] = get8<WIDE>(x + at + first + k * step, n - first - k * step);
#pragma unroll
    for (int k = 0; k < V; k++) weight[k] = get8<WIDE>(w + first + k * step, n - first - k * step);
#pragma unroll
    for (int k = 0; k < V; k++) sum += squares(in[k]);
    block_sums(sum, none, shared);
    float inverse = rsqrtf(sum / n + eps);
#pragma unroll
    for (int k = 0; k < V; k++) {
        int i = first + k * step;
        put8<WIDE>(y + at + i, scaled(in[k], weight[k], inverse), n - i);
    }
}

extern "C" __global__ void __launch_bounds__(1024)
    rmsnorm_block(bf16 *y, const bf16 *x, const bf16 *w, int groups, int n, int ld, float eps)
{
    norm_block<2, true>(y, x, w, groups, n, ld, eps);
}

/* The same of what is not aligned. */
extern "C" __global__ void __launch_bounds__(1024)
    rmsnorm_any(bf16 *y, const bf16 *x, const bf16 *w, int groups, int n, int ld, float eps)
{
    norm_block<1, false>(y, x, w, groups, n, ld, eps);
}

/* ---- gradient ---- */

/* The numbers of one vector that a thread has. */
template <int V> struct Piece {
    uint4 x[V], dy[V], dx[V];
};

template <int V, bool WIDE>
__device__ __forceinline__ void get_piece(Piece<V> &p, const bf16 *dx, int add, const bf16 *dy, const bf16 *x, size_t at, int first,
                                          int step, int n)
{
#pragma unroll
    for (int k = 0; k < V; k++) {
        int i = first + k * step;
        p.x[k] = get8<WIDE>(x + at + i, n - i);
        p.dy[k] = get8<WIDE>(dy + at + i, n - i);
        p.dx[k] = get8<WIDE>(dx + at + i, add ? n - i : 0);
    }
}

/* Sums of x^2 and of dy w x; weights(k) is where the piece has numbers k. */
template <int V, class Weights>
__device__ __forceinline__ void piece_sums(const Piece<V> &p, Weights weights, float &square, float &dot)
{
    square = dot = 0;
#pragma unroll
    for (int k = 0; k < V; k++) {
        float x[8], d[8], g[8];
        unpack8(x, p.x[k]), unpack8(d, p.dy[k]), unpack8(g, weights(k));
#pragma unroll
        for (int i = 0; i < 8; i++) square += x[i] * x[i], dot += d[i] * g[i] * x[i];
    }
}

/* Stores dx; more(k, half, terms) is given what four of the numbers k add to dw. Two by two: what is unpacked takes twice the
 * registers. */
template <int V, bool WIDE, class Weights, class More>
__device__ __forceinline__ void put_piece(bf16 *dx, Piece<V> &p, Weights weights, float square, float dot, float eps, size_t at,
                                          int first, int step, int n, int here, More more)
{
    float inverse = rsqrtf(square / n + eps), back = dot / n * inverse * inverse * inverse;
    auto slope = [=](float x, float d, float g, float before, float &term) {
        d *= inverse;
        term = d * x;
        return before + d * g - x * back;
    };
#pragma unroll
    for (int k = 0; k < V; k++) {
        if (V > 1) stay_packed(p.x[k]), stay_packed(p.dy[k]);
        uint4 w = weights(k);
        unsigned x[4] = {p.x[k].x, p.x[k].y, p.x[k].z, p.x[k].w}, d[4] = {p.dy[k].x, p.dy[k].y, p.dy[k].z, p.dy[k].w};
        unsigned g[4] = {w.x, w.y, w.z, w.w}, out[4] = {p.dx[k].x, p.dx[k].y, p.dx[k].z, p.dx[k].w};
        float terms[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float low = slope(low_half(x[j]), low_half(d[j]), low_half(g[j]), low_half(out[j]), terms[j % 2 * 2]);
            float high = slope(high_half(x[j]), high_half(d[j]), high_half(g[j]), high_half(out[j]), terms[j % 2 * 2 + 1]);
            out[j] = pack2(low, high);
            if (j % 2) more(k, j / 2, make_float4(terms[0], terms[1], terms[2], terms[3]));
        }
        int i = first + k * step;
        put8<WIDE>(dx + at + i, make_uint4(out[0], out[1], out[2], out[3]), here - i);
    }
}

/* Block b has vectors b * each and on, `each` of them, and leaves its sum for dw in row b of `parts` (NULL: not wanted). Each
 * team adds up its sum in shared memory, [teams][n], where they are joined. */
template <int V>
__device__ __forceinline__ void grad_team(bf16 *dx, int add, float *parts, const bf16 *dy, const bf16 *x, const bf16 *w,
                                          unsigned count, unsigned each, int groups, int n, int ld, float eps, int lanes)
{
    extern __shared__ float columns[];
    int teams = blockDim.x / lanes, team = threadIdx.x / lanes, first = (threadIdx.x & (lanes - 1)) * 8, step = lanes * 8;
    unsigned begin = blockIdx.x * each, end = begin + each < count ? begin + each : count;
    float4 *own = (float4 *)(columns + team * n + first);
    if (parts)
        for (int k = 0; k < V; k++)
            if (first + k * step < n) own[k * step / 4] = own[k * step / 4 + 1] = make_float4(0, 0, 0, 0);
    auto weights = [=](int k) { return get8<true>(w + first + k * step, n - first - k * step); }; /* near: all read them */
    Place place(begin + team, groups), next(teams, groups);
    for (unsigned v = begin; v < end; v += teams, place.move(next, groups)) { /* all lanes of a warp go round equally often */
        int here = v + team < end ? n : 0;
        size_t at = place.at(n, ld);
        Piece<V> p;
        float square, dot;
        get_piece<V, true>(p, dx, add, dy, x, at, first, step, here);
        piece_sums<V>(p, weights, square, dot);
        square = warp_sum(square, lanes), dot = warp_sum(dot, lanes);
        put_piece<V, true>(dx, p, weights, square, dot, eps, at, first, step, n, here, [=](int k, int half, float4 f) {
            if (!parts || first + k * step >= here) return;
            float4 &sum = own[k * step / 4 + half];
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

#define GRAD_TEAM(name, V, BLOCKS)                                                                                         \
    extern "C" __global__ void __launch_bounds__(256, BLOCKS)                                                              \
        name(bf16 *dx, int add, float *parts, const bf16 *dy, const bf16 *x, const bf16 *w, unsigned count, unsigned each, \
             int groups, int n, int ld, float eps, int lanes)                                                              \
    {                                                                                                                      \
        grad_team<V>(dx, add, parts, dy, x, w, count, each, groups, n, ld, eps, V > 1 ? 32 : lanes);                       \
    }
GRAD_TEAM(rmsnorm_grad_team1, 1, 5)
GRAD_TEAM(rmsnorm_grad_team4, 4, 3)

/* The same, a block at one vector at a time. */
template <int V, bool WIDE>
__device__ __forceinline__ void grad_block(bf16 *dx, int add, float *parts, const bf16 *dy, const bf16 *x, const bf16 *w,
                                           unsigned count, unsigned each, int groups, int n, int ld, float eps)
{
    __shared__ float shared[2][64]; /* in turns: one barrier a vector is enough */
    int first = threadIdx.x * 8, step = blockDim.x * 8;
    unsigned begin = blockIdx.x * each, end = begin + each < count ? begin + each : count;
    uint4 weight[V];
    float4 dw[V][2] = {};
#pragma unroll
    for (int k = 0; k < V; k++) weight[k] = get8<WIDE>(w + first + k * step, n - first - k * step);
    auto weights = [&](int k) {
        stay_packed(weight[k]);
        return weight[k];
    };
    Place place(begin, groups), next(1, groups);
    for (unsigned v = begin; v < end; v++, place.move(next, groups)) {
        size_t at = place.at(n, ld);
        Piece<V> p;
        float square, dot;
        get_piece<V, WIDE>(p, dx, add, dy, x, at, first, step, n);
        piece_sums<V>(p, weights, square, dot);
        block_sums(square, dot, shared[v & 1]);
        put_piece<V, WIDE>(dx, p, weights, square, dot, eps, at, first, step, n, n, [&](int k, int half, float4 f) {
            float4 &sum = dw[k][half];
            sum = make_float4(sum.x + f.x, sum.y + f.y, sum.z + f.z, sum.w + f.w);
        });
    }
    if (!parts) return;
#pragma unroll
    for (int k = 0; k < V; k++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int c = first + k * step + 4 * half;
            float *to = parts + (size_t)blockIdx.x * n + c;
            if (c < n) to[0] = dw[k][half].x;
            if (c + 1 < n) to[1] = dw[k][half].y;
            if (c + 2 < n) to[2] = dw[k][half].z;
            if (c + 3 < n) to[3] = dw[k][half].w;
        }
}

#define GRAD_BLOCK(name, V, WIDE)                                                                                          \
    extern "C" __global__ void __launch_bounds__(1024)                                                                     \
        name(bf16 *dx, int add, float *parts, const bf16 *dy, const bf16 *x, const bf16 *w, unsigned count, unsigned each, \
             int groups, int n, int ld, float eps)                                                                         \
    {                                                                                                                      \
        grad_block<V, WIDE>(dx, add, parts, dy, x, w, count, each, groups, n, ld, eps);                                    \
    }
GRAD_BLOCK(rmsnorm_grad_block, 2, true)
GRAD_BLOCK(rmsnorm_grad_any, 1, false) /* not aligned */
