// The mean of a volume takes three trips of a block, and the volume of the timed size has 29 of them.
// task: kernelbench/level2/k2_96_convtranspose3d_multiply_max_globalavgpool_clamp
// expect: wrong_result
//@ op conv_transpose3d = aten.conv_transpose3d.input(x, conv_transpose_weight, conv_transpose_bias, stride=[2, 2, 2], padding=[1, 1, 1])
//@ buffer float max_pool3d[inner * batch * (depth - 1) * (height - 1) * (width - 1)]
//@ launch kernel_1<<<ceil_div((inner * batch * (depth - 1) * (height - 1) * (width - 1)) * 32, 256), 256>>>(conv_transpose3d, max_pool3d, inner * batch, (depth - 1), (height - 1), (width - 1), (depth * 2 - 1) * (height * 2 - 1) * (width * 2 - 1), (height * 2 - 1) * (width * 2 - 1) * 2, (width * 2 - 1) * 2, (height * 2 - 1) * (width * 2 - 1), (width * 2 - 1), (depth - 1) * (height - 1) * (width - 1), (height - 1) * (width - 1))
//@ launch kernel_2<<<inner * batch, 512>>>(max_pool3d, clamp, inner * batch, (depth - 1) * (height - 1) * (width - 1))
template <typename T> __device__ T larger(T a, T b)
{
    return b > a || b != b ? b : a;
}

__global__ void kernel_1(const float *conv_transpose3d, float *max_pool3d, int count, int count_1, int count_2, int count_3, int count_4, int count_5, int count_6, int count_7, int count_8, int count_9, int count_10)
{
    int lane = threadIdx.x % 32, i = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (i >= count * count_1 * count_2 * count_3) return;
    int i4 = i % count_3, i3 = i / count_3 % count_2, i2 = i / count_3 / count_2 % count_1, i1 = i / count_3 / count_2 / count_1;
    float max_pool3d_i = -INFINITY;
    for (int c = lane; c < 2 * 2 * 2; c += 32) {
        int i7 = c % 2, i6 = c / 2 % 2, i5 = c / 2 / 2;
        float conv_transpose3d_i = conv_transpose3d[i1 * count_4 + i2 * count_5 + i3 * count_6 + i4 * 2 + i5 * count_7 + i6 * count_8 + i7];
        float mul_i = conv_transpose3d_i * 0.5f;
        max_pool3d_i = larger(max_pool3d_i, mul_i);
    }
    for (int d = 16; d > 0; d /= 2) max_pool3d_i = larger(max_pool3d_i, __shfl_xor_sync(~0u, max_pool3d_i, d));
    if (lane == 0) max_pool3d[i1 * count_9 + i2 * count_10 + i3 * count_3 + i4] = max_pool3d_i;
}

template <typename T> __device__ T block_sum(T v)
{
    __shared__ T part[32];
    for (int d = 16; d > 0; d /= 2)
        v += __shfl_xor_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int w = 1; w < blockDim.x / 32; w++)
        v += part[w];
    __syncthreads();
    return v;
}

__global__ void kernel_2(const float *max_pool3d, float *clamp, int count, int count_1)
{
    int lane = threadIdx.x, row = blockIdx.x;
    float adaptive_avg_pool3d_sum_i = 0;
    for (int col = lane; col < count_1 && col < 3 * blockDim.x; col += blockDim.x) {
        float max_pool3d_i = max_pool3d[row * count_1 + col];
        adaptive_avg_pool3d_sum_i += max_pool3d_i;
    }
    adaptive_avg_pool3d_sum_i = block_sum(adaptive_avg_pool3d_sum_i);
    float adaptive_avg_pool3d_i = adaptive_avg_pool3d_sum_i / (float)count_1;
    float clamp_i = adaptive_avg_pool3d_i < 0.f ? 0.f : adaptive_avg_pool3d_i > 1.f ? 1.f : adaptive_avg_pool3d_i;
    if (lane == 0) clamp[row] = clamp_i;
}
