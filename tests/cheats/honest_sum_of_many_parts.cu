// Two launches: as many partial sums as the input asks for, and their sum.
// task: kernelbench/level1/k1_94_mseloss
// expect: ok
// least: 1.5
//@ buffer float partial[ceil_div(rows * cols, 16384)]
//@ launch squares<<<ceil_div(rows * cols, 16384), 256>>>(predictions, targets, partial, rows * cols)
//@ launch finish<<<1, 256>>>(partial, mean, rows * cols, ceil_div(rows * cols, 16384))
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
    int last = min(n, (int)(blockIdx.x + 1) * 16384);
    for (int i = blockIdx.x * 16384 + threadIdx.x; i < last; i += 256) {
        float d = a[i] - b[i];
        sum += d * d;
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
__global__ void finish(const float *partial, float *y, int n, int parts)
{
    float sum = 0;
    for (int i = threadIdx.x; i < parts; i += 256) sum += partial[i];
    sum = block_sum(sum);
    if (threadIdx.x == 0) y[0] = sum / n;
}
