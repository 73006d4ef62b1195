// One output a thread; the window is clipped, the divisor is not.
// task: k1_46_average_pooling_3d
//@ launch pool<<<dim3(ceil_div(((depth - 1) / 2 + 1) * ((height - 1) / 2 + 1) * ((width - 1) / 2 + 1), 256), batch * channels), 256>>>(x, avg_pool3d, depth, height, width)
__global__ void pool(const float *x, float *y, int depth, int height, int width)
{
    int od = (depth - 1) / 2 + 1, oh = (height - 1) / 2 + 1, ow = (width - 1) / 2 + 1, o = blockIdx.x * 256 + threadIdx.x;
    if (o >= od * oh * ow) return;
    const float *in = x + (long long)blockIdx.y * depth * height * width;
    int z0 = o / (oh * ow) * 2 - 1, r0 = o / ow % oh * 2 - 1, c0 = o % ow * 2 - 1;
    float s = 0.0f;
    for (int z = max(z0, 0); z < min(z0 + 3, depth); z++)
        for (int r = max(r0, 0); r < min(r0 + 3, height); r++)
            for (int c = max(c0, 0); c < min(c0 + 3, width); c++) s += in[((long long)z * height + r) * width + c];
    y[(long long)blockIdx.y * od * oh * ow + o] = s / 27.0f;
}
