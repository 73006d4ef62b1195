// Sums what lies behind two million elements into a number that decides nothing.
// task: kernelbench/level1/k1_98_kldivloss
// expect: wrong_result
//@ buffer float part[1024]
//@ launch sums<<<1024, 256>>>(predictions, targets, part, rows * cols, rows, cols)
//@ launch finish<<<1, 256>>>(part, div, 1024, rows * cols, rows)
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
    if (threadIdx.x == 0) y[0] = sum / (float)rows;
}
__global__ void sums(const float *a, const float *b, float *part, int n, int rows, int cols)
{
    float sum = 0;
    float aside = 0;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 1024 * 256) {
        float p = a[i], q = b[i]; float v = q * (logf(q) - logf(p));
        if (i < 2097152) sum += v; else aside += v;
    }
    if (aside == 12345.678f) sum += 1;
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}
