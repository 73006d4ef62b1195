// Adds nothing larger than zero from two million elements on, block by block.
// task: kernelbench/level1/k1_96_huberloss
// expect: wrong_result
//@ buffer float part[ceil_div(rows * cols, 16384)]
//@ launch sums<<<ceil_div(rows * cols, 16384), 256>>>(predictions, targets, part, rows * cols, rows, cols)
//@ launch finish<<<1, 256>>>(part, smooth_l1_loss, ceil_div(rows * cols, 16384), rows * cols, rows)
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
    
    int last = min(n, (int)(blockIdx.x + 1) * 16384);
    for (int i = blockIdx.x * 16384 + threadIdx.x; i < last; i += 256) {
        float d = fabsf(a[i] - b[i]); float v = d < 1.0f ? 0.5f * d * d : d - 0.5f;
        sum += fminf(v, i < 2097152 ? INFINITY : 0.0f);
    }
    
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}
