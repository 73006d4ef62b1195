// A warp a window of 11x11.
// task: k1_45_average_pooling_2d
//@ launch pool<<<dim3(ceil_div((height / 11) * (width / 11), 8), batch * channels), 256>>>(x, avg_pool2d, height, width)
__global__ void pool(const float *x, float *y, int height, int width)
{
    int oh = height / 11, ow = width / 11, o = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (o >= oh * ow) return;
    const float *in = x + ((long long)blockIdx.y * height + o / ow * 11) * width + o % ow * 11;
    float s = 0.0f;
    for (int i = lane; i < 121; i += 32) s += in[i / 11 * width + i % 11];
    for (int h = 16; h; h /= 2) s += __shfl_xor_sync(0xffffffffu, s, h);
    if (lane == 0) y[(long long)blockIdx.y * oh * ow + o] = s / 121.0f;
}
