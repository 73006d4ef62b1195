// A block a row, then one block for the mean.
// task: k1_95_crossentropyloss
//@ buffer float losses[rows]
//@ launch entropies<<<rows, 256>>>(predictions, targets, losses, cols)
//@ launch finish<<<1, 256>>>(losses, cross_entropy_loss, rows)
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
__global__ void entropies(const float *x, const long long *targets, float *losses, int cols)
{
    __shared__ float tops[256];
    const float *row = x + (long long)blockIdx.x * cols;
    int t = threadIdx.x;
    float top = -INFINITY, sum = 0.0f;
    for (int c = t; c < cols; c += 256) top = fmaxf(top, row[c]);
    tops[t] = top;
    for (int h = 128; h; h /= 2) {
        __syncthreads();
        if (t < h) tops[t] = fmaxf(tops[t], tops[t + h]);
    }
    __syncthreads();
    top = tops[0];
    for (int c = t; c < cols; c += 256) sum += expf(row[c] - top);
    sum = block_sum(sum);
    if (t == 0) losses[blockIdx.x] = logf(sum) + top - row[targets[blockIdx.x]];
}
__global__ void finish(const float *losses, float *y, int rows)
{
    float sum = 0.0f;
    for (int r = threadIdx.x; r < rows; r += 256) sum += losses[r];
    sum = block_sum(sum);
    if (threadIdx.x == 0) y[0] = sum / rows;
}
