// The kernels of a pattern. In front of this text stand the plan and the macros of one row of patterns.tsv:
// KIND, FOUR or ONE or MATRIX, TRIPS, STATEMENT, and MEMORY where the pattern uses the plan's buffers.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef long long long_long;
typedef __half2 half2_kind;
typedef __nv_bfloat162 bf162;

#define AT(index) x[min((unsigned)(index), (unsigned)(n - 1))]
// Sixteen bytes; the sizes of checks below 4 have none.
#define AT4(index) ((const float4 *)x)[min((unsigned)(index), (unsigned)(max(n, 4) / 4 - 1))]

__constant__ float table[1024] = {1.0f};

template <class T> __device__ T first(float s, int k);
template <> __device__ float first<float>(float s, int k)
{
    return s + 0.25f * k;
}
template <> __device__ unsigned first<unsigned>(float s, int k)
{
    return __float_as_uint(s) + k;
}
template <> __device__ double first<double>(float s, int k)
{
    return 1.5 + s + k;
}
template <> __device__ long_long first<long_long>(float s, int k)
{
    return (long_long)__float_as_uint(s) << 20 | k;
}
template <> __device__ __half2 first<__half2>(float s, int k)
{
    return __floats2half2_rn(s, s + k);
}
template <> __device__ bf162 first<bf162>(float s, int k)
{
    return __floats2bfloat162_rn(s, s + k);
}

template <class T> __device__ float value(T v)
{
    return (float)v;
}
template <> __device__ float value<__half2>(__half2 v)
{
    return __low2float(v) + __high2float(v);
}
template <> __device__ float value<bf162>(bf162 v)
{
    return __low2float(v) + __high2float(v);
}

#ifdef MEMORY
__global__ void clear(float *scratch, unsigned *words)
{
    scratch[blockIdx.x * 256 + threadIdx.x] = 0.0f;
    words[blockIdx.x * 256 + threadIdx.x] = 0;
}
#define BUFFERS , float *scratch, unsigned *words, float *far
#else
#define BUFFERS
#endif

#ifdef CLUSTER
__device__ void meet()
{
    asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
}
#define PAIRS __cluster_dims__(2, 1, 1)
#else
#define PAIRS
#endif

__device__ __noinline__ float called(float v, float p)
{
    return v * p + 0.25f;
}

// No run writes the sink: n is positive, which the compiler does not know.
__global__ void PAIRS pattern(const float *x, float *y, int n BUFFERS)
{
    const unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    const float s = AT(i), p = 1.0f + 1e-9f * n, q = 0.5f - 1e-9f * n;
    const unsigned k = 0x10001u + n, m = 0xfff0fu ^ n;
    const long_long k64 = ((long_long)k << 32) + 12345 + n;
    const double d = 1.0 + 1e-12 * n;
    const __half2 h = __floats2half2_rn(p, q);
    const bf162 g = __floats2bfloat162_rn(p, q);
#ifdef SHARED
    __shared__ __align__(16) float big[4096];
    unsigned *ints = (unsigned *)big;
    const unsigned base = (unsigned)__cvta_generic_to_shared(big);
    for (int z = t; z < 4096; z += blockDim.x) big[z] = 0.0f;
#ifdef SIGNAL
    __shared__ __align__(8) unsigned long long ready;
    const unsigned signal = (unsigned)__cvta_generic_to_shared(&ready);
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(signal) : "memory");
#endif
    __syncthreads();
#endif
#ifdef CLUSTER
    // The same memory of the other block of the pair.
    unsigned other;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(other)
                 : "r"(base), "r"(~blockIdx.x & 1));
    meet();
#endif
#ifdef LOCAL
    float mine[LOCAL];
    for (int z = 0; z < LOCAL; z++) mine[z] = s;
#endif
#ifdef MATRIX
    float a0 = s, a1 = s, a2 = s, a3 = s, a4 = s, a5 = s, a6 = s, a7 = s;
    unsigned c0 = t, c1 = t, c2 = t, c3 = t, w0 = k, w1 = m, w2 = k, w3 = m, w4 = k, w5 = m;
    double d0 = s, d1 = s, d2 = d, d3 = d;
#else
    KIND v0 = first<KIND>(s, 0), v1 = first<KIND>(s, 1), v2 = first<KIND>(s, 2),
         v3 = first<KIND>(s, 3);
#endif
    // Of a number of trips that the compiler does not know: it would move a short loop into the branch of
    // the sink.
    const int trips = TRIPS + (n >> 31);
#pragma unroll 8
    for (int r = 0; r < trips; r++) {
#ifdef MATRIX
        STATEMENT
#else
        auto step = [&](KIND &v, int j) { STATEMENT };
        step(v0, 0);
#ifdef FOUR
        step(v1, 1);
        step(v2, 2);
        step(v3, 3);
#endif
#endif
    }
#ifdef MATRIX
    float sum =
        a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + c0 + c1 + c2 + c3 + (float)(d0 + d1 + d2 + d3);
#else
    float sum = value(v0) + value(v1) + value(v2) + value(v3);
#endif
#ifdef CLUSTER
    meet();
#endif
    if (n < 0) y[i] = sum;
}

__global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
