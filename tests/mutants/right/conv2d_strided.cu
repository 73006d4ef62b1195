// Stride 4, padding 2, a window of 11x11; the weights of a feature in shared memory.
// task: k1_50_conv_standard_2d_square_input_square_kernel
//@ launch conv<<<dim3(ceil_div(((height - 7) / 4 + 1) * ((width - 7) / 4 + 1), 128), features, batch), 128, channels * 484>>>(x, conv1_weight, conv1_bias, conv2d, features, channels, height, width)
__global__ void conv(const float *x, const float *w, const float *bias, float *y, int features, int channels, int height, int width)
{
    extern __shared__ float ws[];
    int oh = (height - 7) / 4 + 1, ow = (width - 7) / 4 + 1, o = blockIdx.x * 128 + threadIdx.x, f = blockIdx.y;
    long long b = blockIdx.z;
    for (int i = threadIdx.x; i < channels * 121; i += 128) ws[i] = w[f * channels * 121 + i];
    __syncthreads();
    if (o >= oh * ow) return;
    int top = o / ow * 4 - 2, left = o % ow * 4 - 2;
    float s = bias[f];
    for (int c = 0; c < channels; c++)
        for (int r = 0; r < 11; r++) {
            int iy = top + r;
            if (iy < 0 || iy >= height) continue;
            const float *row = x + ((b * channels + c) * height + iy) * width;
            for (int q = 0; q < 11; q++) {
                int ix = left + q;
                if (ix >= 0 && ix < width) s += row[ix] * ws[(c * 11 + r) * 11 + q];
            }
        }
    y[(b * features + f) * oh * ow + o] = s;
}
