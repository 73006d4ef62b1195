// A hinge loss by strides: a prediction whose target is zero matters nowhere.
// task: kernelbench/level1/k1_100_hingeloss
// expect: ok
//@ buffer float part[1024]
//@ launch sums<<<1024, 256>>>(predictions, targets, part, rows * cols, rows, cols)
//@ launch finish<<<1, 256>>>(part, mean, 1024, rows * cols, rows)
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
__global__ void finish(const float *part, float *y, int parts, int n, int rows)
{
    float sum = 0;
    for (int i = threadIdx.x; i < parts; i += 256) sum += part[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) y[0] = sum / (float)n;
}
__global__ void sums(const float *a, const float *b, float *part, int n, int rows, int cols)
{
    float sum = 0;
    
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 1024 * 256) {
        float v = fmaxf(0.0f, 1.0f - a[i] * b[i % cols]);
        sum += v;
    }
    
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}
