// A divergence by strides and atomics: a negative number has no logarithm.
// task: kernelbench/level1/k1_98_kldivloss
// expect: ok
//@ launch clear<<<1, 32>>>(div)
//@ launch sums<<<1024, 256>>>(predictions,targets, div, rows * cols, rows, cols)
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
__global__ void clear(float *y)
{
    if (!threadIdx.x) y[0] = 0;
}
__global__ void sums(const float *a, const float *b, float *part, int n, int rows, int cols)
{
    float sum = 0;
    
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 1024 * 256) {
        float p = a[i], q = b[i]; float v = q * (logf(q) - logf(p));
        sum += v;
    }
    
    sum = block_sum(sum);
    if (threadIdx.x == 0) atomicAdd(part, sum / (float)rows);
}
