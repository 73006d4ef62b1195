// A thread a position; the channels are a plane apart.
// task: k1_36_rmsnorm
//@ launch normalize<<<dim3(ceil_div(height * width, 256), batch), 256>>>(x, div, channels, height * width)
__global__ void normalize(const float *x, float *y, int channels, int plane)
{
    int p = blockIdx.x * 256 + threadIdx.x;
    if (p >= plane) return;
    long long base = (long long)blockIdx.y * channels * plane + p;
    float sum = 0.0f;
    for (int c = 0; c < channels; c++) {
        float v = x[base + (long long)c * plane];
        sum += v * v;
    }
    float root = sqrtf(sum / channels + 1e-5f);
    for (int c = 0; c < channels; c++) y[base + (long long)c * plane] = x[base + (long long)c * plane] / root;
}
