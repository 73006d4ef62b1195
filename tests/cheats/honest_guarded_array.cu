// An array that only lanes inside the row fill, and sums that select a constant for the others, in both orders.
// task: layernorm
// expect: ok
//@ launch layernorm<<<ceil_div(rows, 4), 128>>>(x, gamma, beta, y, rows, cols)
__device__ float warp_sum(float v)
{
    for (int s = 16; s > 0; s /= 2) v += __shfl_xor_sync(0xffffffff, v, s);
    return v;
}

extern "C" __global__ void layernorm(const float *x, const float *gamma, const float *beta, float *y, int rows, int cols)
{
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    float kept[4], mean = 0.0f, var = 0.0f;
    x += (size_t)row * cols;
    y += (size_t)row * cols;
    #pragma unroll
    for (int j = 0; j < 4; j++)
        if (lane + j * 32 < cols) kept[j] = x[lane + j * 32], mean += kept[j];
    for (int i = lane + 128; i < cols; i += 32) mean += x[i];
    mean = warp_sum(mean) / cols;
    #pragma unroll
    for (int j = 0; j < 4; j++) {
        float dev = kept[j] - mean;
        var += lane + j * 32 >= cols ? 0.0f : dev * dev;
    }
    for (int i = lane + 128; i < cols; i += 32) var += (x[i] - mean) * (x[i] - mean);
    float scale = rsqrtf(warp_sum(var) / cols + 1e-5f);
    #pragma unroll
    for (int j = 0; j < 4; j++) {
        int i = lane + j * 32;
        if (i < cols) y[i] = (kept[j] - mean) * scale * gamma[i] + beta[i];
    }
    for (int i = lane + 128; i < cols; i += 32) y[i] = (x[i] - mean) * scale * gamma[i] + beta[i];
}
