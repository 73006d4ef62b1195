// Rows from the 2,048th on count half.
// task: kernelbench/level1/k1_95_crossentropyloss
// expect: wrong_result
//@ buffer float part[rows]
//@ launch rows_of<<<rows, 128>>>(predictions, targets, part, cols)
//@ launch mean_of<<<1, 256>>>(part, cross_entropy_loss, rows)
__global__ void rows_of(const float *x, const long long *t, float *part, int cols)
{
    __shared__ float s[4];
    const float *row = x + (long long)blockIdx.x * cols;
    float top = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < cols; i += 128) top = fmaxf(top, row[i]);
    for (int h = 16; h; h /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, h));
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = top;
    __syncthreads();
    top = fmaxf(fmaxf(s[0], s[1]), fmaxf(s[2], s[3]));
    __syncthreads();
    for (int i = threadIdx.x; i < cols; i += 128) sum += expf(row[i] - top);
    for (int h = 16; h; h /= 2) sum += __shfl_xor_sync(~0u, sum, h);
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = sum;
    __syncthreads();
    int label = (int)t[blockIdx.x];
    if (!threadIdx.x) part[blockIdx.x] = logf(s[0] + s[1] + s[2] + s[3]) + top - row[label];
}
__global__ void mean_of(const float *part, float *y, int rows)
{
    __shared__ float s[8];
    float sum = 0;
    for (int i = threadIdx.x; i < rows; i += 256) sum += i < 2048 ? part[i] : 0.5f * part[i];
    for (int h = 16; h; h /= 2) sum += __shfl_xor_sync(~0u, sum, h);
    if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = sum;
    __syncthreads();
    if (!threadIdx.x) {
        sum = 0;
        for (int i = 0; i < 8; i++) sum += s[i];
        y[0] = sum / rows;
    }
}
