// The maximum of a product's row is that of half of the warps: where a feature of the others is far above
// all, exponentials overflow.
// task: kernelbench/level2/k2_66_matmul_dropout_softmax
// expect: wrong_result
//@ op linear = aten.linear(x, matmul_weight, matmul_bias)
//@ launch kernel_1<<<rows, 256>>>(linear, softmax, features, rows)
template <typename T> __device__ T larger(T a, T b)
{
    return b > a || b != b ? b : a;
}

template <typename T> __device__ T block_max(T v)
{
    __shared__ T part[32];
    for (int d = 16; d > 0; d /= 2)
        v = larger(v, __shfl_xor_sync(~0u, v, d));
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    v = part[0];
    for (int w = 1; w < blockDim.x / 64; w++)
        v = larger(v, part[w]);
    __syncthreads();
    return v;
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

__global__ void kernel_1(const float *linear, float *softmax, int features, int rows)
{
    int lane = threadIdx.x, row = blockIdx.x;
    float softmax_max_i = -INFINITY;
    for (int col = lane; col < features; col += blockDim.x) {
        float linear_i = linear[row * features + col];
        softmax_max_i = larger(softmax_max_i, linear_i);
    }
    softmax_max_i = block_max(softmax_max_i);
    float softmax_expsum_i = 0;
    for (int col = lane; col < features; col += blockDim.x) {
        float linear_i = linear[row * features + col];
        softmax_expsum_i += exp(linear_i - softmax_max_i);
    }
    softmax_expsum_i = block_sum(softmax_expsum_i);
    for (int col = lane; col < features; col += blockDim.x) {
        float linear_i = linear[row * features + col];
        float softmax_part_i = linear_i - softmax_max_i;
        float softmax_part_2_i = exp(softmax_part_i);
        float softmax_i = softmax_part_2_i / softmax_expsum_i;
        softmax[row * features + col] = softmax_i;
    }
}
