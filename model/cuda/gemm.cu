#include "engine.cuh"

/* d[m][n] = beta c + bias, before a product is added to it: grid (m, n / 256), blocks of 256. c may be d. */
extern "C" __global__ void spread_bias(float *d, const float *c, const bf16 *bias, float beta, int adds, int n, int ldd)
{
    int col = blockIdx.y * blockDim.x + threadIdx.x;
    size_t at = (size_t)blockIdx.x * ldd + col;
    if (col < n) d[at] = (adds ? beta * c[at] : 0.0f) + wide(bias[col]);
}
