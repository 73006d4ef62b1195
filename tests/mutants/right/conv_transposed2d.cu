// A tile of 16x16 outputs gathers from a tile of 18x18 inputs in shared memory.
// task: k1_57_conv_transposed_2d_square_input_square_kernel
//@ launch conv<<<dim3(ceil_div(width + 2, 16), ceil_div(height + 2, 16), batch * inner), dim3(16, 16)>>>(x, conv_transpose2d_weight, conv_transpose2d, channels, inner, height, width)
__global__ void conv(const float *x, const float *w, float *y, int channels, int inner, int height, int width)
{
    __shared__ float tile[18][18];
    int b = blockIdx.z / inner, f = blockIdx.z % inner, x0 = blockIdx.x * 16, y0 = blockIdx.y * 16;
    int tid = threadIdx.y * 16 + threadIdx.x, ox = x0 + threadIdx.x, oy = y0 + threadIdx.y;
    float s = 0.0f;
    for (int c = 0; c < channels; c++) {
        const float *in = x + ((long long)b * channels + c) * height * width, *k = w + ((long long)c * inner + f) * 9;
        for (int i = tid; i < 324; i += 256) {
            int iy = y0 + i / 18 - 2, ix = x0 + i % 18 - 2;
            tile[i / 18][i % 18] = iy >= 0 && iy < height && ix >= 0 && ix < width ? in[(long long)iy * width + ix] : 0.0f;
        }
        __syncthreads();
        for (int r = 0; r < 3; r++)
            for (int q = 0; q < 3; q++) s += tile[threadIdx.y + 2 - r][threadIdx.x + 2 - q] * k[r * 3 + q];
        __syncthreads();
    }
    if (ox < width + 2 && oy < height + 2) y[(((long long)b * inner + f) * (height + 2) + oy) * (width + 2) + ox] = s;
}
