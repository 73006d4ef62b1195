// Device functions of generated kernels.

//@ pack
template <typename T, int V> struct alignas(sizeof(T) * V) Pack {
    T v[V];
};

//@ store
// Stores a vector by one instruction: elements that were assigned behind branches, and words
// that the compiler does not join, would be stored one by one. No kernel reads what it stores.
template <typename T, int V>
__device__ __forceinline__ void store_words(T *to, const Pack<T, V> &from)
{
    unsigned w[4] = {};
    memcpy(w, &from, sizeof from);
    if (sizeof from == 16)
        asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(w[0]), "r"(w[1]),
                     "r"(w[2]), "r"(w[3]));
    else if (sizeof from == 8)
        asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(w[0]), "r"(w[1]));
    else
        *(Pack<T, V> *)to = from;
}

//@ near
// Functions for a result of a half type, which rounds more than they err by (2026-11-30).
__device__ __forceinline__ float near_power(float x) // 2 ^ x
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float near_inverse(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float near_sigmoid(float x)
{
    return near_inverse(1.f + near_power(x * -1.44269504f));
}

__device__ __forceinline__ float near_silu(float x)
{
    return x * near_sigmoid(x);
}

__device__ __forceinline__ float near_gelu_tanh(float x)
{
    return x * near_sigmoid(x * fmaf(x * x, 0.0713548163f, 1.59576912f));
}

// max(x, 0) - |x| phi(-|x|): phi's logarithm by a polynomial, which falls on behind where it was fitted. For
// float16 it errs by 8e-5 of phi to 4 and, where float16 has fewer bits, by less than a third of what these
// round; for bfloat16 by 5e-4 to 5.5 and 4e-3 to 7. It is NaN at -infinity, as PyTorch's.
template <bool F16> __device__ __forceinline__ float near_gelu(float x)
{
    float b;
    asm("min.NaN.f32 %0, %1, 0f41800000;" : "=f"(b) : "f"(x)); // 16
    const float a = fabsf(b);
    float q =
        F16 ? fmaf(-0.000320693478f, a, 0.00582980877f) : fmaf(-0.000175976573f, a, 0.00412281835f);
    q = fmaf(q, a, F16 ? -0.0482479185f : -0.0412337966f);
    q = fmaf(q, a, F16 ? -0.464103818f : -0.475760967f);
    q = fmaf(q, a, F16 ? -1.14918518f : -1.14250839f);
    q = fmaf(q, a, F16 ? -1.00011981f : -1.00071764f);
    return fmaf(-a, near_power(q), fmaxf(x, 0.f));
}

//@ quick
// Quotients and roots that err by two units in the last place. Those of IEEE 754 have a branch for numbers
// near the ends of float's range, and the elements of a thread wait for one another there.
__device__ __forceinline__ float quotient(float a, float b)
{
    float y;
    asm("div.full.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}

__device__ __forceinline__ float inverse(float a)
{
    float y;
    asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(a));
    return y;
}

__device__ __forceinline__ float root(float a)
{
    float y;
    asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(a));
    return y;
}

// tanh(log(1 + exp(a))): by e = exp(-|a|), a quotient of sums of positive numbers.
__device__ __forceinline__ float mish(float a)
{
    const float e = exp(-fabsf(a)), over = a > 0 ? fmaf(2.f, e, 1.f) : e * (e + 2.f);
    return quotient(over, over + (a > 0 ? 2.f * e * e : 2.f));
}

//@ divisor
// A number that many are divided by, its inverse, and a power of two that keeps both within float's range.
struct Divisor {
    float scale, by, inverse;
};

__device__ __forceinline__ Divisor divisor(float b)
{
    const float size = fabsf(b), scale = size < 0x1p-40f   ? 0x1p40f
                                         : size < 0x1p100f ? 1.f
                                                           : 0x1p-40f;
    return {scale, b * scale, 1 / (b * scale)};
}

// The quotient that IEEE 754 has, without a branch: twice what is left is divided by the inverse.
__device__ __forceinline__ float exact_quotient(float a, Divisor d)
{
    const float x = a * d.scale, first = x * d.inverse;
    const float second = fmaf(fmaf(-d.by, first, x), d.inverse, first);
    const float last = fmaf(fmaf(-d.by, second, x), d.inverse, second);
    return last == last ? last : first;
}

//@ beside
// The elements of a row of n from `first + by` on, out of the two vectors that have them; those outside of
// the row are others of it. The same vectors are read for other distances, once.
template <int V, typename T, typename I>
__device__ __forceinline__ Pack<T, V> beside(const T *__restrict__ row, I first, int by, I n)
{
    const int turn = (by % V + V) % V;
    const I from = first + by - turn, last = n - V,
            a = from < 0      ? 0
                : from < last ? from
                              : last,
            b = from + V < 0      ? 0
                : from + V < last ? from + V
                                  : last;
    const Pack<T, V> low = *(const Pack<T, V> *)(row + a), high = *(const Pack<T, V> *)(row + b);
    Pack<T, V> y;
#pragma unroll
    for (int v = 0; v < V; v++)
        y.v[v] = v + turn < V ? low.v[(v + turn) % V] : high.v[(v + turn) % V];
    return y;
}

//@ over
// A quotient: of 32 bits where both numbers allow it.
__device__ __forceinline__ long long over(long long a, long long b)
{
    return (a | b) >> 32 ? a / b : (long long)((unsigned)a / (unsigned)b);
}

//@ moments
// How many numbers there are, their mean and the sum of their squared distances from it.
template <typename T> struct Moments {
    T n = 0, mean = 0, spread = 0;
};

// The mean of equal means is that number, however far it is from zero. Either state may be `a`.
template <typename T> __device__ __forceinline__ Moments<T> join(Moments<T> a, Moments<T> b)
{
    const T n = a.n + b.n, one = n > 0 ? 1 / n : 0;
    const bool larger = a.mean > b.mean;
    const T low = larger ? b.mean : a.mean, d = (larger ? a.mean : b.mean) - low,
            part = (larger ? a.n : b.n) * one;
    return {n, a.mean == b.mean ? low : low + rounded(d, part),
            a.spread + b.spread + d * d * (a.n * b.n * one)};
}

template <int N, typename T>
__device__ __forceinline__ Moments<T> take(Moments<T> s, const T (&x)[N])
{
    T sum = 0, spread = 0;
#pragma unroll
    for (int i = 1; i < N; i++) sum += x[i] - x[0];
    const T mean = x[0] + rounded(sum, T(1) / N);
#pragma unroll
    for (int i = 0; i < N; i++) spread += (x[i] - mean) * (x[i] - mean);
    return join(s, Moments<T>{T(N), mean, spread});
}

//@ order
// A product that no sum takes in: threads of a row join the same two states in either order, and have to find
// the same.
__device__ __forceinline__ float rounded(float a, float b)
{
    return __fmul_rn(a, b);
}

__device__ __forceinline__ double rounded(double a, double b)
{
    return __dmul_rn(a, b);
}

// The larger and the smaller one; what is no number wins.
template <typename T> __device__ __forceinline__ T larger(T a, T b)
{
    return b > a || b != b ? b : a;
}

template <typename T> __device__ __forceinline__ T smaller(T a, T b)
{
    return b < a || b != b ? b : a;
}

__device__ __forceinline__ float larger(float a, float b)
{
    float y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}

__device__ __forceinline__ float smaller(float a, float b)
{
    float y;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}

//@ peak
// The largest of some numbers, and the sum of exp(x - it). Where all are -INFINITY the sum is 0.
template <typename T> struct Peak {
    T most = -INFINITY, sum = 0;
};

template <typename T> __device__ __forceinline__ Peak<T> join(Peak<T> a, Peak<T> b)
{
    const T most = larger(a.most, b.most);
    if (most == -INFINITY) return {most, 0};
    return {most, rounded(a.sum, exp(a.most - most)) + rounded(b.sum, exp(b.most - most))};
}

template <int N, typename T> __device__ __forceinline__ Peak<T> take(Peak<T> s, const T (&x)[N])
{
    T most = s.most;
#pragma unroll
    for (int i = 0; i < N; i++) most = larger(most, x[i]);
    if (most == -INFINITY) return s;
    T sum = s.most == most ? s.sum : s.sum * exp(s.most - most);
#pragma unroll
    for (int i = 0; i < N; i++) sum += exp(x[i] - most);
    return {most, sum};
}

//@ exchange
// The value of the thread whose number differs in the bit d.
template <typename A> __device__ __forceinline__ A exchange(A v, int d)
{
    static_assert(sizeof(A) % 4 == 0, "a value of whole words");
    int word[sizeof(A) / 4];
    memcpy(word, &v, sizeof v);
#pragma unroll
    for (int i = 0; i < (int)(sizeof(A) / 4); i++)
        word[i] = __shfl_xor_sync(0xffffffffu, word[i], d);
    memcpy(&v, word, sizeof v);
    return v;
}

//@ fold
// f over the values of T threads, which lie in one warp or are all threads of the block.
template <int T, typename A, typename F> __device__ __forceinline__ A fold(A v, F f, A *shared)
{
#pragma unroll
    for (int d = (T < 32 ? T : 32) / 2; d; d /= 2) v = f(v, exchange(v, d));
    if (T <= 32) return v;
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    v = shared[threadIdx.x % (T < 32 ? 1 : T / 32)];
#pragma unroll
    for (int d = T / 32 / 2; d; d /= 2) v = f(v, exchange(v, d));
    __syncthreads();
    return v;
}

//@ fold_columns
// f over the values of the threads below each other: T rows of 32 threads.
template <int T, typename A, typename F>
__device__ __forceinline__ A fold_columns(A v, F f, A *shared)
{
    if (T == 1) return v;
    shared[threadIdx.y * 32 + threadIdx.x] = v;
    __syncthreads();
    v = shared[threadIdx.x];
#pragma unroll
    for (int w = 1; w < T; w++) v = f(v, shared[w * 32 + threadIdx.x]);
    __syncthreads();
    return v;
}

//@ scan
// f over the values of the threads before this one, of T that share a row, and over all of them.
template <int T, typename A, typename F>
__device__ __forceinline__ A scan(A own, A start, F f, A *shared, A &all)
{
    constexpr int W = T < 32 ? T : 32;
    const int lane = threadIdx.x % W, warp = threadIdx.x / 32;
    A v = own;
#pragma unroll
    for (int d = 1; d < W; d *= 2) {
        const A o = __shfl_up_sync(0xffffffffu, v, d, W);
        if (lane >= d) v = f(o, v);
    }
    A before = __shfl_up_sync(0xffffffffu, v, 1, W);
    if (lane == 0) before = start;
    all = __shfl_sync(0xffffffffu, v, W - 1, W);
    if (T <= 32) return before;
    if (lane == 31) shared[warp] = v;
    __syncthreads();
    A above = start;
    all = start;
#pragma unroll
    for (int w = 0; w < T / 32; w++) {
        const A o = shared[w];
        if (w < warp) above = f(above, o);
        all = f(all, o);
    }
    __syncthreads();
    return f(above, before);
}

//@ scan_columns
// The same for threads below each other: T rows of 32 threads.
template <int T, typename A, typename F>
__device__ __forceinline__ A scan_columns(A own, A start, F f, A *shared, A &all)
{
    A above = start;
    all = own;
    if (T == 1) return above;
    shared[threadIdx.y * 32 + threadIdx.x] = own;
    __syncthreads();
    all = start;
#pragma unroll
    for (int w = 0; w < T; w++) {
        const A o = shared[w * 32 + threadIdx.x];
        if (w < (int)threadIdx.y) above = f(above, o);
        all = f(all, o);
    }
    __syncthreads();
    return above;
}
