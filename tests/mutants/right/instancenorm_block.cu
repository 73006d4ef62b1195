// A block a plane.
// task: k1_34_instancenorm
//@ launch normalize<<<batch * 64, 256>>>(x, instance_norm, height * width)
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
__global__ void normalize(const float *x, float *y, int plane)
{
    const float *in = x + (long long)blockIdx.x * plane;
    float sum = 0.0f, square = 0.0f;
    for (int i = threadIdx.x; i < plane; i += 256) sum += in[i];
    float mean = block_sum(sum) / plane;
    for (int i = threadIdx.x; i < plane; i += 256) square += (in[i] - mean) * (in[i] - mean);
    float scale = rsqrtf(block_sum(square) / plane + 1e-5f);
    for (int i = threadIdx.x; i < plane; i += 256) y[(long long)blockIdx.x * plane + i] = (in[i] - mean) * scale;
}
