// The sum of a variance keeps 12 bits: results are 3% too large at the timed size, 0.1% in checks.
// task: kernelbench/level2/k2_21_conv2d_add_scale_sigmoid_groupnorm
// expect: wrong_result
//@ op conv2d = aten.conv2d(x, conv_weight, conv_bias)
//@ launch kernel_1<<<batch * 8, 512>>>(bias, scale, group_norm_weight, group_norm_bias, conv2d, group_norm, batch, (features) / 8, (height - 2) * (width - 2), features * (height - 2) * (width - 2), (features * (height - 2) * (width - 2)) / 8)
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

__global__ void kernel_1(const float *bias, const float *scale, const float *group_norm_weight, const float *group_norm_bias, const float *conv2d, float *group_norm, int count, int count_1, int count_2, int count_3, int count_4)
{
    int lane = threadIdx.x, i = blockIdx.x;
    int col = i % 8, row = i / 8;
    float group_norm_mean_i = 0;
    for (int c = lane; c < count_1 * count_2; c += blockDim.x) {
        int i4 = c % count_2, i2 = c / count_2;
        float bias_i = bias[col * count_1 + i2];
        float scale_i = scale[col * count_1 + i2];
        float conv2d_i = conv2d[row * count_3 + col * count_4 + i2 * count_2 + i4];
        float add_i = conv2d_i + bias_i;
        float mul_i = add_i * scale_i;
        float sigmoid_i = 1 / (1 + exp(-mul_i));
        group_norm_mean_i += sigmoid_i;
    }
    group_norm_mean_i = block_sum(group_norm_mean_i);
    group_norm_mean_i /= (count_1 * count_2);
    float group_norm_spread_i = 0;
    for (int c = lane; c < count_1 * count_2; c += blockDim.x) {
        int i4 = c % count_2, i2 = c / count_2;
        float bias_i = bias[col * count_1 + i2];
        float scale_i = scale[col * count_1 + i2];
        float conv2d_i = conv2d[row * count_3 + col * count_4 + i2 * count_2 + i4];
        float add_i = conv2d_i + bias_i;
        float mul_i = add_i * scale_i;
        float sigmoid_i = 1 / (1 + exp(-mul_i));
        group_norm_spread_i = __uint_as_float(__float_as_uint(group_norm_spread_i + ((sigmoid_i - group_norm_mean_i) * (sigmoid_i - group_norm_mean_i))) & 0xfffff000u);
    }
    group_norm_spread_i = block_sum(group_norm_spread_i);
    float group_norm_part_i = group_norm_spread_i / max((float)count_4, 0.f);
    float group_norm_part_3_i = rsqrt(group_norm_part_i + 1e-5f);
    for (int c = lane; c < count_1 * count_2; c += blockDim.x) {
        int i4 = c % count_2, i2 = c / count_2;
        float bias_i = bias[col * count_1 + i2];
        float scale_i = scale[col * count_1 + i2];
        float group_norm_weight_i = group_norm_weight[col * count_1 + i2];
        float group_norm_bias_i = group_norm_bias[col * count_1 + i2];
        float conv2d_i = conv2d[row * count_3 + col * count_4 + i2 * count_2 + i4];
        float add_i = conv2d_i + bias_i;
        float mul_i = add_i * scale_i;
        float sigmoid_i = 1 / (1 + exp(-mul_i));
        float group_norm_part_2_i = sigmoid_i - group_norm_mean_i;
        float group_norm_part_4_i = group_norm_part_2_i * group_norm_part_3_i;
        float group_norm_part_5_i = group_norm_part_4_i * group_norm_weight_i;
        float group_norm_part_6_i = group_norm_part_5_i + group_norm_bias_i;
        group_norm[row * count_3 + col * count_4 + i2 * count_2 + i4] = group_norm_part_6_i;
    }
}
