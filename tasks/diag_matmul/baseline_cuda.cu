// torch.diag(d) @ b: zeros, the diagonal copied in, then the full product.
//@ buffer float diagonal[n * n]
//@ launch zeros<<<ceil_div(n * n, 1024), 128>>>(diagonal, n * n)
//@ launch set_diagonal<<<ceil_div(n, 256), 128>>>(d, diagonal, n)
//@ library cublas.gemm(diagonal, b, c, 0, 0, 1, n, m, n, 0, 0, n, m, m, 0, 0, 0, 1.0)
extern "C" __global__ void zeros(float *y, int n)
{
    int first = blockIdx.x * 1024;
    if (first + 1024 <= n) {
#pragma unroll
        for (int j = 0; j < 2; j++) reinterpret_cast<float4 *>(y + first)[threadIdx.x + j * 128] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    } else {
        for (int i = first + threadIdx.x; i < n; i += 128) y[i] = 0.0f;
    }
}

extern "C" __global__ void set_diagonal(const float *d, float *diagonal, int n)
{
    int first = blockIdx.x * 256 + threadIdx.x;
#pragma unroll
    for (int j = 0; j < 2; j++) {
        int i = first + j * 128;
        if (i < n) diagonal[(long long)i * n + i] = d[i];
    }
}
