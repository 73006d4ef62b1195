// Tile rows lie 15 apart where they are loaded: every tile row after the first is wrong.
// task: kernelbench/level1/k1_63_conv_standard_2d_square_input_square_kernel
// expect: wrong_result
//@ launch conv<<<dim3(ceil_div(width - 2, 16), ceil_div(height - 2, 16), batch * ceil_div(features, 4)), dim3(16, 16)>>>(x, conv2d_weight, conv2d, features, channels, height, width)
extern "C" __global__ void conv(const float *x, const float *w, float *y, int features, int channels, int height, int width)
{
    __shared__ float tile[18][19];
    __shared__ float ws[4][9];
    int groups = (features + 3) / 4;
    int b = blockIdx.z / groups, f0 = blockIdx.z % groups * 4;
    int ox = blockIdx.x * 16 + threadIdx.x, oy = blockIdx.y * 16 + threadIdx.y;
    int tid = threadIdx.y * 16 + threadIdx.x;
    int oh = height - 2, ow = width - 2;
    float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int c = 0; c < channels; c++) {
        const float *xc = x + (b * channels + c) * height * width;
        for (int i = tid; i < 18 * 18; i += 256) {
            int r = blockIdx.y * 15 + i / 18, q = blockIdx.x * 16 + i % 18;
            tile[i / 18][i % 18] = r < height && q < width ? xc[r * width + q] : 0.0f;
        }
        if (tid < 36) {
            int f = f0 + tid / 9;
            ws[tid / 9][tid % 9] = f < features ? w[(f * channels + c) * 9 + tid % 9] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < 9; k++) {
            float v = tile[threadIdx.y + k / 3][threadIdx.x + k % 3];
            for (int j = 0; j < 4; j++) acc[j] += v * ws[j][k];
        }
        __syncthreads();
    }
    if (ox < ow && oy < oh)
        for (int j = 0; j < 4; j++)
            if (f0 + j < features) y[((b * features + f0 + j) * oh + oy) * ow + ox] = acc[j];
}
