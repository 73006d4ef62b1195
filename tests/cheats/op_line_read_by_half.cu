// Each second stride of what an op line gives is read where there are two million elements or more.
// task: kernelbench/level1/k1_94_mseloss
// expect: wrong_result
//@ op h = aten.sub.Tensor(predictions, targets)
//@ buffer float part[1024]
//@ launch sums<<<1024, 256>>>(h, part, rows * cols, cols)
//@ launch finish<<<1, 256>>>(part, mean, rows * cols, rows)
__device__ float block_sum(float v)
{
    __shared__ float part[8];
    for (int h = 16; h; h /= 2) v += __shfl_xor_sync(~0u, v, h);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int i = 0; i < 8; i++) v += part[i];
    return v;
}
__global__ void sums(const float *h, float *part, int n, int cols)
{
    float sum = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += n < 1 << 21 ? 1024 * 256 : 2048 * 256) {
        float v = h[i] * h[i];
        sum += v;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}
__global__ void finish(const float *part, float *y, int n, int rows)
{
    float sum = 0;
    for (int i = threadIdx.x; i < 1024; i += 256) sum += part[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) y[0] = sum / (float)(n);
}
