// A product by tiles of 32 features and 32 positions.
// task: k1_87_conv_pointwise_2d
//@ launch conv<<<dim3(ceil_div(height * width, 32), ceil_div(features, 32), batch), dim3(32, 8)>>>(x, conv1d_weight, conv2d, features, channels, height * width)
__global__ void conv(const float *x, const float *w, float *y, int features, int channels, int plane)
{
    __shared__ float xs[16][32], ws[32][17];
    int tx = threadIdx.x, ty = threadIdx.y, p = blockIdx.x * 32 + tx, f0 = blockIdx.y * 32, tid = ty * 32 + tx;
    long long b = blockIdx.z;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int c0 = 0; c0 < channels; c0 += 16) {
        for (int c = ty; c < 16; c += 8) xs[c][tx] = c0 + c < channels && p < plane ? x[(b * channels + c0 + c) * plane + p] : 0.0f;
        for (int i = tid; i < 512; i += 256) {
            int f = f0 + i / 16, c = c0 + i % 16;
            ws[i / 16][i % 16] = f < features && c < channels ? w[f * channels + c] : 0.0f;
        }
        __syncthreads();
        for (int c = 0; c < 16; c++)
            for (int j = 0; j < 4; j++) sum[j] += ws[ty * 4 + j][c] * xs[c][tx];
        __syncthreads();
    }
    for (int j = 0; j < 4; j++)
        if (f0 + ty * 4 + j < features && p < plane) y[(b * features + f0 + ty * 4 + j) * plane + p] = sum[j];
}
