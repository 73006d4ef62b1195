// The maximum of a product's row behind GELU is that of one warp: where a feature of the others is far
// above all, exponentials overflow.
// task: kernelbench/level2/k2_99_matmul_gelu_softmax
// expect: wrong_result
// says: rows of large values
//@ op linear = aten.linear(x, linear_weight, linear_bias)
//@ buffer float gelu[features * rows]
//@ launch kernel_1<<<ceil_div(features * rows, 256), 256>>>(linear, gelu, features * rows)
//@ launch kernel_2<<<rows, 256>>>(gelu, softmax, features, rows)
__global__ void kernel_1(const float *linear, float *gelu, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float linear_i = linear[i];
    float gelu_i = 0.5f * linear_i * (1 + erf(linear_i * 0.70710678118654752440f));
    gelu[i] = gelu_i;
}

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
    for (int w = 1; w < blockDim.x / 32; w++)
        ;
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

__global__ void kernel_2(const float *gelu, float *softmax, int features, int rows)
{
    int lane = threadIdx.x, row = blockIdx.x;
    float softmax_max_i = -INFINITY;
    for (int col = lane; col < features; col += blockDim.x) {
        float gelu_i = gelu[row * features + col];
        softmax_max_i = larger(softmax_max_i, gelu_i);
    }
    softmax_max_i = block_max(softmax_max_i);
    float softmax_expsum_i = 0;
    for (int col = lane; col < features; col += blockDim.x) {
        float gelu_i = gelu[row * features + col];
        softmax_expsum_i += exp(gelu_i - softmax_max_i);
    }
    softmax_expsum_i = block_sum(softmax_expsum_i);
    for (int col = lane; col < features; col += blockDim.x) {
        float gelu_i = gelu[row * features + col];
        float softmax_part_i = gelu_i - softmax_max_i;
        float softmax_part_2_i = exp(softmax_part_i);
        float softmax_i = softmax_part_2_i / softmax_expsum_i;
        softmax[row * features + col] = softmax_i;
    }
}

