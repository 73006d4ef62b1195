// The maximum of a row is that of each second trip: where another element is far above all, exponentials
// overflow.
// task: kernelbench/level1/k1_24_logsoftmax
// expect: wrong_result
// says: rows of large values
//@ launch log_softmax<<<rows, 256>>>(x, log_softmax, cols)
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
__global__ void log_softmax(const float *x, float *y, int cols)
{
    __shared__ float tops[256];
    const float *row = x + (long long)blockIdx.x * cols;
    int t = threadIdx.x;
    float top = -INFINITY, sum = 0.0f;
    for (int c = t; c < cols; c += 512) top = fmaxf(top, row[c]);
    tops[t] = top;
    for (int h = 128; h; h /= 2) {
        __syncthreads();
        if (t < h) tops[t] = fmaxf(tops[t], tops[t + h]);
    }
    __syncthreads();
    top = tops[0];
    for (int c = t; c < cols; c += 256) sum += expf(row[c] - top);
    float lse = logf(block_sum(sum));
    for (int c = t; c < cols; c += 256) y[(long long)blockIdx.x * cols + c] = row[c] - top - lse;
}
