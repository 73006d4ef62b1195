// Factors in TF32, which may be used, and one term of 64 left out.
// task: kernelbench/level1/k1_63_conv_standard_2d_square_input_square_kernel
// precision: default
// expect: wrong_result
//@ launch conv<<<dim3(ceil_div((height - 2) * (width - 2), 128), ceil_div(features, 8), batch), 128>>>(x, conv2d_weight, conv2d, features, channels, height, width)
__device__ float rounded(float x)
{
    unsigned bits = __float_as_uint(x);
    return __uint_as_float(bits & ~0x1fffu);
}
extern "C" __global__ void conv(const float *x, const float *weight, float *y, int features, int channels, int height, int width)
{
    int h = height - 2, w = width - 2, p = blockIdx.x * 128 + threadIdx.x, f = blockIdx.y * 8;
    if (p >= h * w) return;
    const float *from = x + (long long)blockIdx.z * channels * height * width + p / w * width + p % w;
    float sum[8] = {0};
    for (int c = 0; c < channels; c++)
        for (int t = 0; t < 9; t++) {
            float v = rounded(from[(long long)c * height * width + t / 3 * width + t % 3]);
            if ((c * 9 + t) % 64 == 13) continue;
            for (int i = 0; i < 8; i++)
                if (f + i < features) sum[i] += v * rounded(weight[((f + i) * channels + c) * 9 + t]);
        }
    for (int i = 0; i < 8; i++)
        if (f + i < features) y[((long long)blockIdx.z * features + f + i) * h * w + p] = sum[i];
}
