// torch.relu(a @ b + bias), launch for launch: cuBLAS, the broadcast add, the elementwise relu.
//@ buffer float product[m * n]
//@ buffer float sum[m * n]
//@ library cublas.gemm(a, b, product, 0, 0, 1, m, n, k, 0, 0, k, n, n, 0, 0, 0, 1.0)
//@ launch add_bias<<<ceil_div(m * n, 256), 128>>>(product, bias, sum, m * n, n)
//@ launch relu<<<ceil_div(m * n, 1024), 128>>>(sum, c, m * n)

// A broadcast operand has no common stride: two separate accesses a thread.
extern "C" __global__ void add_bias(const float *x, const float *bias, float *y, int count, int n)
{
    int first = blockIdx.x * 256 + threadIdx.x;
#pragma unroll
    for (int j = 0; j < 2; j++) {
        int i = first + j * 128;
        if (i < count) y[i] = x[i] + bias[i % n];
    }
}

// A block takes 1024 elements, eight a thread in two 16-byte accesses; the last block takes what is left.
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int first = blockIdx.x * 1024;
    if (first + 1024 <= n) {
        float4 v[2];
#pragma unroll
        for (int j = 0; j < 2; j++) v[j] = reinterpret_cast<const float4 *>(x + first)[threadIdx.x + j * 128];
#pragma unroll
        for (int j = 0; j < 2; j++) {
            v[j].x = v[j].x > 0.0f ? v[j].x : 0.0f;
            v[j].y = v[j].y > 0.0f ? v[j].y : 0.0f;
            v[j].z = v[j].z > 0.0f ? v[j].z : 0.0f;
            v[j].w = v[j].w > 0.0f ? v[j].w : 0.0f;
            reinterpret_cast<float4 *>(y + first)[threadIdx.x + j * 128] = v[j];
        }
    } else {
        for (int i = first + threadIdx.x; i < n; i += 128) y[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
}
