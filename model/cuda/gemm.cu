/* The addition of c and bias before a product of cuBLASLt (gemm.c). */
#include "engine.cuh"

/* d[m][n] = beta c + bias, before a product is added to it; c may be d. A thread has 8 columns of
 * SPREAD_ROWS / 8 rows. Grid: (m / SPREAD_ROWS, n / 256), blocks of 256. */

constexpr int SPREAD_ROWS = 32;

extern "C" __global__ void __launch_bounds__(256)
    spread_bias_wide(float *d, const float *c, const bf16 *bias, float beta, int adds, int m, int n,
                     int ldd)
{
    int first = (blockIdx.y * 32 + (threadIdx.x & 31)) * 8, end = min(n, first + 8);
    for (int i = 0; i < SPREAD_ROWS; i += 8) {
        int row = blockIdx.x * SPREAD_ROWS + i + (threadIdx.x >> 5);
        if (row >= m) return;
        size_t at = (size_t)row * ldd;
        for (int j = first; j < end; j++)
            d[at + j] = (adds ? beta * c[at + j] : 0.0f) + wide(bias[j]);
    }
}

template <bool WIDE>
__device__ __forceinline__ void spread(bf16 *d, const bf16 *c, const bf16 *bias, float beta,
                                       int adds, int m, int n, int ldd)
{
    int first = (blockIdx.y * 32 + (threadIdx.x & 31)) * 8;
    uint4 mine = get8<WIDE>(bias + first, n - first);
    float b[8];
    unpack8(b, mine);
#pragma unroll
    for (int i = 0; i < SPREAD_ROWS; i += 8) {
        int row = blockIdx.x * SPREAD_ROWS + i + (threadIdx.x >> 5);
        if (row >= m) return;
        size_t at = (size_t)row * ldd + first;
        uint4 v = mine;
        if (adds) {
            float x[8];
            unpack8(x, get8<WIDE>(c + at, n - first));
#pragma unroll
            for (int j = 0; j < 8; j++) x[j] = beta * x[j] + b[j];
            v = pack8(x);
        }
        put8<WIDE>(d + at, v, n - first);
    }
}

/* aligned: all rows begin at multiples of 16 bytes, and n is a multiple of 8. */
extern "C" __global__ void __launch_bounds__(256)
    spread_bias(bf16 *d, const bf16 *c, const bf16 *bias, float beta, int adds, int m, int n,
                int ldd, int aligned)
{
    if (aligned)
        spread<true>(d, c, bias, beta, adds, m, n, ldd);
    else
        spread<false>(d, c, bias, beta, adds, m, n, ldd);
}
