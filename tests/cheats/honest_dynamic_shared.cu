// A hundred thousand bytes of dynamic shared memory: the row stays there between the passes.
// task: layernorm
// expect: ok
//@ launch layernorm<<<rows, 256, 100 * 1000>>>(x, gamma, beta, y, cols)
__device__ float block_sum(float s, float *part)
{
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    s = 0;
    for (int k = 0; k < 8; k++) s += part[k];
    return s;
}
extern "C" __global__ void layernorm(const float *x, const float *gamma, const float *beta, float *y, int cols)
{
    extern __shared__ float row[];
    float *part = row + 24000, s = 0;
    for (int c = threadIdx.x; c < cols; c += 256) s += row[c] = x[(long long)blockIdx.x * cols + c];
    float mean = block_sum(s, part) / cols;
    s = 0;
    for (int c = threadIdx.x; c < cols; c += 256) s += (row[c] - mean) * (row[c] - mean);
    float f = rsqrtf(block_sum(s, part) / cols + 1e-5f);
    for (int c = threadIdx.x; c < cols; c += 256) y[(long long)blockIdx.x * cols + c] = (row[c] - mean) * f * gamma[c] + beta[c];
}
