// A tile of 32x8 outputs a block with its halo in shared memory.
// task: k1_82_conv_depthwise_2d_square_input_square_kernel
//@ launch depthwise<<<dim3(ceil_div(width - 2, 32), ceil_div(height - 2, 8), batch * 64), dim3(32, 8)>>>(x, conv2d_weight, conv2d, height, width)
__global__ void depthwise(const float *x, const float *w, float *y, int height, int width)
{
    __shared__ float tile[10][35];
    int x0 = blockIdx.x * 32, y0 = blockIdx.y * 8, plane = blockIdx.z, c = plane % 64;
    const float *in = x + (long long)plane * height * width;
    for (int r = threadIdx.y; r < 10; r += 8)
        for (int q = threadIdx.x; q < 34; q += 32)
            tile[r][q] = y0 + r < height && x0 + q < width ? in[(y0 + r) * width + x0 + q] : 0.0f;
    __syncthreads();
    int ox = x0 + threadIdx.x, oy = y0 + threadIdx.y;
    if (ox >= width - 2 || oy >= height - 2) return;
    float s = 0.0f;
    for (int r = 0; r < 3; r++)
        for (int q = 0; q < 3; q++) s += tile[threadIdx.y + r][threadIdx.x + q] * w[c * 9 + r * 3 + q];
    y[((long long)plane * (height - 2) + oy) * (width - 2) + ox] = s;
}
