// A block a group of channels.
// task: k1_35_groupnorm
//@ launch normalize<<<batch * 8, 256>>>(x, gn_weight, gn_bias, group_norm, channels / 8, height * width)
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
__global__ void normalize(const float *x, const float *gamma, const float *beta, float *y, int inside, int plane)
{
    const float *in = x + (long long)blockIdx.x * (inside * plane);
    float sum = 0.0f, square = 0.0f;
    for (int i = threadIdx.x; i < (inside * plane); i += 256) sum += in[i];
    float mean = block_sum(sum) / (inside * plane);
    for (int i = threadIdx.x; i < (inside * plane); i += 256) square += (in[i] - mean) * (in[i] - mean);
    float scale = rsqrtf(block_sum(square) / (inside * plane) + 1e-5f);
    for (int i = threadIdx.x; i < (inside * plane); i += 256) y[(long long)blockIdx.x * (inside * plane) + i] = (in[i] - mean) * scale * gamma[blockIdx.x % 8 * inside + i / plane] + beta[blockIdx.x % 8 * inside + i / plane];
}
