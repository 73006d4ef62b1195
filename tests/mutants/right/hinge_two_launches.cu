// The targets are a row that every row meets.
// task: k1_100_hingeloss
//@ buffer float partial[256]
//@ launch hinges<<<256, 256>>>(predictions, targets, partial, rows * cols, cols)
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
__global__ void hinges(const float *a, const float *b, float *partial, int n, int cols)
{
    float sum = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        float h = 1.0f - a[i] * b[i % cols];
        sum += h < 0.0f ? 0.0f : h;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
__global__ void finish(const float *partial, float *y, int n)
{
    float sum = block_sum(partial[threadIdx.x]);
    if (threadIdx.x == 0) y[0] = sum / n;
}
