// One output a thread; dilation 3, stride 2, padding 1.
// task: k1_43_max_pooling_3d
//@ launch pool<<<dim3(ceil_div(((depth - 5) / 2 + 1) * ((height - 5) / 2 + 1) * ((width - 5) / 2 + 1), 256), batch * channels), 256>>>(x, max_pool3d, depth, height, width)
__global__ void pool(const float *x, float *y, int depth, int height, int width)
{
    int od = (depth - 5) / 2 + 1, oh = (height - 5) / 2 + 1, ow = (width - 5) / 2 + 1, o = blockIdx.x * 256 + threadIdx.x;
    if (o >= od * oh * ow) return;
    const float *in = x + (long long)blockIdx.y * depth * height * width;
    int z0 = o / (oh * ow) * 2 - 1, r0 = o / ow % oh * 2 - 1, c0 = o % ow * 2 - 1;
    float m = -INFINITY;
    for (int k = 0; k < 27; k++) {
        int z = z0 + k / 9 * 3, r = r0 + k / 3 % 3 * 3, c = c0 + k % 3 * 3;
        if (z < 0 || z >= depth || r < 0 || r >= height || c < 0 || c >= width) continue;
        float v = in[((long long)z * height + r) * width + c];
        if (v > m || v != v) m = v;
    }
    y[(long long)blockIdx.y * od * oh * ow + o] = m;
}
