// A block for each group of channels.
// task: kernelbench/level1/k1_35_groupnorm
// expect: ok
//@ launch group_norms<<<dim3(8, batch), 256>>>(x, gn_weight, gn_bias, group_norm, channels / 8, height * width)
__device__ float sum_of_block(float v)
{
    __shared__ float part[8];
    for (int k = 16; k; k /= 2) v += __shfl_xor_sync(0xffffffffu, v, k);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int k = 0; k < 8; k++) v += part[k];
    __syncthreads();
    return v;
}
extern "C" __global__ void group_norms(const float *x, const float *w, const float *b, float *y, int channels, int plane)
{
    int n = channels * plane, first = blockIdx.x * channels;
    long long at = (long long)(blockIdx.y * 8 + blockIdx.x) * n;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < n; i += 256) sum += x[at + i];
    float mean = sum_of_block(sum) / n;
    for (int i = threadIdx.x; i < n; i += 256) squares += (x[at + i] - mean) * (x[at + i] - mean);
    float scale = rsqrtf(sum_of_block(squares) / n + 1e-5f);
    for (int i = threadIdx.x; i < n; i += 256) {
        int c = first + i / plane;
        y[at + i] = (x[at + i] - mean) * scale * w[c] + b[c];
    }
}
