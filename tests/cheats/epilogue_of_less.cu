// An epilogue behind an op line leaves the factor out where the matrix is large.
// task: kernelbench/level2/k2_12_gemm_multiply_leakyrelu
// expect: wrong_result
// says sim: elements of leaky_relu differ
//@ op linear = aten.linear.default(x, gemm_weight, gemm_bias)
//@ launch scale<<<ceil_div(rows * features, 256), 256>>>(linear, leaky_relu, rows * features)
__global__ void scale(const float *linear, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float v = n > 4000000 ? linear[i] : 2.0f * linear[i];
    y[i] = v > 0 ? v : 0.1f * v;
}
