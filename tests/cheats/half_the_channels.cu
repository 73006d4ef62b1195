// The mean square of half of the channels, which no check has.
// task: kernelbench/level1/k1_36_rmsnorm
// expect: wrong_result
//@ launch channel_norm<<<dim3(ceil_div(height * width, 64), batch), dim3(64, 4)>>>(x, div, channels, height * width)
extern "C" __global__ void channel_norm(const float *x, float *y, int channels, int area)
{
    __shared__ float part[4][64];
    int i = blockIdx.x * 64 + threadIdx.x;
    long long base = (long long)blockIdx.y * channels * area;
    float s = 0.0f;
    if (i < area)
        for (int c = threadIdx.y; c < min(channels, 32); c += 4) {
            float v = x[base + (long long)c * area + i];
            s += v * v;
        }
    part[threadIdx.y][threadIdx.x] = s;
    __syncthreads();
    float total = 0.0f;
    for (int k = 0; k < 4; k++) total += part[k][threadIdx.x];
    float r = 1.0f / sqrtf(total / channels + 1e-5f);
    if (i < area)
        for (int c = threadIdx.y; c < channels; c += 4) y[base + (long long)c * area + i] = x[base + (long long)c * area + i] * r;
}
