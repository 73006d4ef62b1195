// Mean, then squares of the deviations; a block a row.
// task: layernorm
//@ launch normalize<<<rows, 256>>>(x, gamma, beta, y, cols)
__device__ float block_sum(float v)
{
    __shared__ float part[8];
    for (int h = 16; h; h /= 2) v += __shfl_xor_sync(0xffffffffu, v, h);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
    for (int i = 0; i < 8; i++) v += part[i];
    return v;
}
__global__ void normalize(const float *x, const float *gamma, const float *beta, float *y, int cols)
{
    const float *in = x + (long long)blockIdx.x * cols;
    float sum = 0.0f, square = 0.0f;
    for (int i = threadIdx.x; i < cols; i += 256) sum += in[i];
    float mean = block_sum(sum) / cols;
    for (int i = threadIdx.x; i < cols; i += 256) square += (in[i] - mean) * (in[i] - mean);
    float scale = rsqrtf(block_sum(square) / cols + 1e-5f);
    for (int i = threadIdx.x; i < cols; i += 256) y[(long long)blockIdx.x * cols + i] = (in[i] - mean) * scale * gamma[i] + beta[i];
}
