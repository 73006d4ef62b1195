// The variance by the mean of squares: wrong where a row's mean is far from zero behind a product with ones.
// task: composed/gate_layernorm
// expect: wrong_result
//@ launch k<<<rows, 128>>>(x, gate, weight, y, cols)
#define ADD(a, b) ((a) + (b))
__device__ float blk(float v, int max)
{
    __shared__ float part[4];
    for (int d = 16; d; d /= 2) { float o = __shfl_xor_sync(~0u, v, d); v = max ? fmaxf(v, o) : v + o; }
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    return max ? fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3])) : part[0] + part[1] + part[2] + part[3];
}
__global__ void k(const float *x, const float *g, const float *w, float *y, int cols)
{
    long long at = (long long)blockIdx.x * cols;
    int t = threadIdx.x;
    float s = 0, q = 0;
    for (int c = t; c < cols; c += 128) { float v = x[at + c] * g[at + c]; s += v; q += v * v; }
    s = blk(s, 0) / cols; q = blk(q, 0) / cols - s * s;
    float r = rsqrtf(q + 1e-5f);
    for (int c = t; c < cols; c += 128) y[at + c] = (((x[at + c] * g[at + c]) - s) * r) * w[c];
}
