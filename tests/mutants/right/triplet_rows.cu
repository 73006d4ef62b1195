// A block a row, then one block for the mean.
// task: k1_99_tripletmarginloss
//@ buffer float losses[rows]
//@ launch distances<<<rows, 256>>>(anchor, positive, negative, losses, cols)
//@ launch finish<<<1, 256>>>(losses, triplet_margin_loss, rows)
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
__global__ void distances(const float *a, const float *p, const float *n, float *losses, int cols)
{
    long long base = (long long)blockIdx.x * cols;
    float near = 0.0f, far = 0.0f;
    for (int c = threadIdx.x; c < cols; c += 256) {
        float x = a[base + c] - p[base + c] + 1e-6f, y = a[base + c] - n[base + c] + 1e-6f;
        near += x * x;
        far += y * y;
    }
    near = sqrtf(block_sum(near));
    far = sqrtf(block_sum(far));
    float loss = near - far + 1.0f;
    if (threadIdx.x == 0) losses[blockIdx.x] = loss < 0.0f ? 0.0f : loss;
}
__global__ void finish(const float *losses, float *y, int rows)
{
    float sum = 0.0f;
    for (int r = threadIdx.x; r < rows; r += 256) sum += losses[r];
    sum = block_sum(sum);
    if (threadIdx.x == 0) y[0] = sum / rows;
}
