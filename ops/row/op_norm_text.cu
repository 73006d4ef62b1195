/* Kernels of normalisations. */

//@ moments
#ifndef OP_MOMENTS
#define OP_MOMENTS
template <typename T> struct op_moments {
    T n, mean, m2;
    __device__ void add(T x)
    {
        n += 1;
        const T d = x - mean;
        mean += d * ((T)1 / n);
        m2 += d * (x - mean);
    }
    __device__ void add_square(T x) { n += 1, m2 += x * x; }
    __device__ void merge(T on, T omean, T om2)
    {
        if (on == 0) return;
        const T all = n + on, d = omean - mean, part = on / all;
        mean += d * part;
        m2 += om2 + d * d * n * part;
        n = all;
    }
    __device__ void warp()
    {
        for (int d = 16; d; d /= 2) {
            const T on = __shfl_down_sync(0xffffffffu, n, d);
            const T omean = __shfl_down_sync(0xffffffffu, mean, d);
            const T om2 = __shfl_down_sync(0xffffffffu, m2, d);
            merge(on, omean, om2);
        }
    }
    __device__ void block(T (*shared)[3])
    {
        warp();
        if (blockDim.x == 32) return;
        T *own = shared[threadIdx.x / 32];
        if (threadIdx.x % 32 == 0) own[0] = n, own[1] = mean, own[2] = m2;
        __syncthreads();
        if (threadIdx.x == 0)
            for (int w = 1; w < blockDim.x / 32; w++)
                merge(shared[w][0], shared[w][1], shared[w][2]);
    }
};
#endif

//@ merge_warps: moments of the warps, pair by pair
    s.warp();
    for (int half = blockDim.y / 2; half; half /= 2) {
        if (threadIdx.x == 0 && threadIdx.y >= half && threadIdx.y < 2 * half) {
            T *to = shared[threadIdx.y - half];
            to[0] = s.n, to[1] = s.mean, to[2] = s.m2;
        }
        __syncthreads();
        const T *from = shared[threadIdx.y];
        if (threadIdx.x == 0 && threadIdx.y < half)
            s.merge(from[0], from[1], from[2]);
        __syncthreads();
    }
    if (thread == 0) shared[0][0] = s.mean, shared[0][1] = s.m2 / (T)n;
    __syncthreads();

//@ fours
    typedef @type@ T;
    __shared__ T shared[@warps@][3];
    const int thread = threadIdx.x + threadIdx.y * blockDim.x;
    const int threads = blockDim.x * blockDim.y, all = n / 4;
    const long long r = blockIdx.x;

//@ fours_sum
    op_fours<@stored@> *to = (op_fours<@stored@> *)(y0 + r * n);
    op_moments<T> s = {0, 0, 0};
    for (int i = thread; i < all; i += threads) {
        const op_fours<@type@> x = row[i];
#pragma unroll
        for (int k = 0; k < 4; k++) s.@add@((T)x.v[k]);
    }

//@ fours_store
    for (int i = thread; i < all; i += threads) {
        const op_fours<@type@> x = row[i];
        op_fours<@stored@> y;
#pragma unroll
        for (int k = 0; k < 4; k++)
            y.v[k] = (@stored@)(@weight@rstd * ((T)x.v[k]@mean@)@bias@);
        to[i] = y;
    }

//@ fours_type
#ifndef OP_FOURS
#define OP_FOURS
template <typename T> struct __align__(4 * sizeof(T)) op_fours { T v[4]; };
#endif

//@ row
    typedef @type@ T;
    __shared__ T shared[32][3], row_mean, row_rstd;
    const @index@ r = blockIdx.x;
    op_moments<T> s = {0, 0, 0};

//@ merge
    typedef @type@ T;
    const int r = blockIdx.x;
    op_moments<T> s = {0, 0, 0};
    for (int k = threadIdx.x; k < @splits@; k += 32) {
        const long long i = r * @splits@LL + k;
        s.merge(t@n@[i], t@mean@[i], t@m2@[i]);
    }
    s.warp();
    if (threadIdx.x) return;

//@ statistics
    typedef @type@ T;
    __shared__ T shared[32][3];
    const @index@ r = blockIdx.x;
    op_moments<T> s = {0, 0, 0};

//@ split_state
    const long long at = r * @splits@LL + blockIdx.y;
    t@n@[at] = s.n;
    t@mean@[at] = s.mean;
    t@m2@[at] = s.m2;

//@ row_store
    row_mean = s.mean;
    row_rstd = rsqrt(var + eps);
    }
    __syncthreads();
    const T mean = row_mean, rstd = row_rstd;
#pragma unroll 4
    for (@index@ j = threadIdx.x; j < @n@; j += @threads@) {
        const @index@ f = r * @n@ + j;
        y0[f] = (@stored@)((\

//@ planes
    for (@index@ n = threadIdx.y + blockIdx.y * blockDim.y; n < @batch@; n += blockDim.y * gridDim.y) {
        const @index@ from = (n * @channels@ + r) * @spread@;
        for (@index@ k = threadIdx.x; k < @spread@; k += blockDim.x) {
            const @index@ i = from + k;
            y0[i] = (@stored@)((\
