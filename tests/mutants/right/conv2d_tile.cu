// A tile of 16x16 outputs, its input with the halo in shared memory, four features a thread.
// task: k1_63_conv_standard_2d_square_input_square_kernel
//@ launch conv<<<dim3(ceil_div(width - 2, 16), ceil_div(height - 2, 16), batch * ceil_div(features, 4)), dim3(16, 16)>>>(x, conv2d_weight, conv2d, features, channels, height, width)
__global__ void conv(const float *x, const float *w, float *y, int features, int channels, int height, int width)
{
    __shared__ float tile[18][19], ws[4][9];
    int groups = (features + 3) / 4, b = blockIdx.z / groups, f0 = blockIdx.z % groups * 4;
    int x0 = blockIdx.x * 16, y0 = blockIdx.y * 16, tx = threadIdx.x, ty = threadIdx.y, tid = ty * 16 + tx;
    int oh = height - 2, ow = width - 2, ox = x0 + tx, oy = y0 + ty;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int c = 0; c < channels; c++) {
        const float *plane = x + ((long long)b * channels + c) * height * width;
        for (int i = tid; i < 18 * 18; i += 256) {
            int r = y0 + i / 18, q = x0 + i % 18;
            tile[i / 18][i % 18] = r < height && q < width ? plane[(long long)r * width + q] : 0.0f;
        }
        if (tid < 36) ws[tid / 9][tid % 9] = f0 + tid / 9 < features ? w[((f0 + tid / 9) * channels + c) * 9 + tid % 9] : 0.0f;
        __syncthreads();
        for (int k = 0; k < 9; k++) {
            float v = tile[ty + k / 3][tx + k % 3];
            for (int f = 0; f < 4; f++) sum[f] += v * ws[f][k];
        }
        __syncthreads();
    }
    if (ox >= ow || oy >= oh) return;
    for (int f = 0; f < 4; f++)
        if (f0 + f < features) y[(((long long)b * features + f0 + f) * oh + oy) * ow + ox] = sum[f];
}
