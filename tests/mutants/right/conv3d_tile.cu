// A tile of 8x8x4 outputs with its halo in shared memory.
// task: k1_54_conv_standard_3d_square_input_square_kernel
//@ launch conv<<<dim3(ceil_div(width - 2, 8) * ceil_div(height - 2, 8), ceil_div(depth - 2, 4), batch * features), dim3(8, 8, 4)>>>(x, conv3d_weight, conv3d, features, channels, depth, height, width)
__global__ void conv(const float *x, const float *w, float *y, int features, int channels, int depth, int height, int width)
{
    __shared__ float tile[6][10][10];
    int od = depth - 2, oh = height - 2, ow = width - 2, across = (ow + 7) / 8;
    int x0 = blockIdx.x % across * 8, y0 = blockIdx.x / across * 8, z0 = blockIdx.y * 4;
    int b = blockIdx.z / features, f = blockIdx.z % features;
    int tx = threadIdx.x, ty = threadIdx.y, tz = threadIdx.z, tid = (tz * 8 + ty) * 8 + tx;
    float s = 0.0f;
    for (int c = 0; c < channels; c++) {
        const float *in = x + ((long long)b * channels + c) * depth * height * width;
        for (int i = tid; i < 600; i += 256) {
            int z = z0 + i / 100, r = y0 + i / 10 % 10, q = x0 + i % 10;
            tile[i / 100][i / 10 % 10][i % 10] = z < depth && r < height && q < width ? in[((long long)z * height + r) * width + q] : 0.0f;
        }
        __syncthreads();
        const float *k = w + (f * channels + c) * 27;
        for (int i = 0; i < 27; i++) s += tile[tz + i / 9][ty + i / 3 % 3][tx + i % 3] * k[i];
        __syncthreads();
    }
    if (x0 + tx < ow && y0 + ty < oh && z0 + tz < od)
        y[(((long long)b * features + f) * od + z0 + tz) * oh * ow + (y0 + ty) * ow + x0 + tx] = s;
}
