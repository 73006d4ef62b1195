// The maximum that the exponentials are shifted by is that of three channels.
// task: kernelbench/level2/k2_58_convtranspose3d_logsumexp_hardswish_subtract_clamp
// expect: wrong_result
//@ op conv_transpose3d = aten.conv_transpose3d.input(x, conv_transpose_weight, conv_transpose_bias, stride=[2, 2, 2], padding=[1, 1, 1])
//@ launch kernel_1<<<ceil_div(batch * (depth * 2 - 1) * (height * 2 - 1) * (width * 2 - 1), 256), 256>>>(bias, conv_transpose3d, clamp, inner, batch, (depth * 2 - 1) * (height * 2 - 1) * (width * 2 - 1), inner * (depth * 2 - 1) * (height * 2 - 1) * (width * 2 - 1))
template <typename T> __device__ T larger(T a, T b)
{
    return b > a || b != b ? b : a;
}

__global__ void kernel_1(const float *bias, const float *conv_transpose3d, float *clamp, int inner, int count, int count_1, int count_3)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count * count_1) return;
    int col = i % count_1, row = i / count_1;
    float bias_i = bias[0];
    float logsumexp_max_i = -INFINITY;
    for (int term = 0; term < inner && term < 3; term++) {
        float conv_transpose3d_i = conv_transpose3d[row * count_3 + col + term * count_1];
        logsumexp_max_i = larger(logsumexp_max_i, conv_transpose3d_i);
    }
    float logsumexp_part_i = logsumexp_max_i < 0 ? -logsumexp_max_i : logsumexp_max_i;
    bool logsumexp_part_2_i = logsumexp_part_i == INFINITY;
    float logsumexp_part_3_i = (float)logsumexp_part_2_i != 0 ? 0.f : logsumexp_max_i;
    float logsumexp_sum_i = 0;
    for (int term = 0; term < inner; term++) {
        float conv_transpose3d_i = conv_transpose3d[row * count_3 + col + term * count_1];
        float logsumexp_part_4_i = conv_transpose3d_i - logsumexp_part_3_i;
        float logsumexp_part_5_i = exp(logsumexp_part_4_i);
        logsumexp_sum_i += logsumexp_part_5_i;
    }
    float logsumexp_part_6_i = log(logsumexp_sum_i);
    float logsumexp_i = logsumexp_part_6_i + logsumexp_part_3_i;
    float add_i = logsumexp_i + 3.f;
    float sigmoid_i = 1 / (1 + exp(-add_i));
    float mul_i = logsumexp_i * sigmoid_i;
    float div_i = mul_i / 6.f;
    float sub_i = div_i - bias_i;
    float clamp_i = sub_i < -1.f ? -1.f : sub_i > 1.f ? 1.f : sub_i;
    clamp[row * count_1 + col] = clamp_i;
}

