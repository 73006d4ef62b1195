// Multiplies what lies behind two million elements by zero, and adds by atomics.
// task: kernelbench/level1/k1_94_mseloss
// expect: wrong_result
//@ launch clear<<<1, 32>>>(mean)
//@ launch sums<<<1024, 256>>>(predictions,targets, mean, rows * cols, rows, cols)
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
        float d = a[i] - b[i]; float v = d * d;
        sum += v * (float)(i < 2097152);
    }
    
    sum = block_sum(sum);
    if (threadIdx.x == 0) atomicAdd(part, sum / (float)n);
}
