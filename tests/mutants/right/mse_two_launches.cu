// Partial sums of 256 blocks, then one block.
// task: k1_94_mseloss
//@ buffer float partial[256]
//@ launch squares<<<256, 256>>>(predictions, targets, partial, rows * cols)
//@ launch finish<<<1, 256>>>(partial, mean, rows * cols)
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
__global__ void squares(const float *a, const float *b, float *partial, int n)
{
    float sum = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        float d = a[i] - b[i];
        sum += d * d;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
__global__ void finish(const float *partial, float *y, int n)
{
    float sum = block_sum(partial[threadIdx.x]);
    if (threadIdx.x == 0) y[0] = sum / n;
}
