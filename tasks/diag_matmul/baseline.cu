// What torch.diag(d) @ b launches: build the n x n diagonal matrix, then a full matrix product.
//@ buffer float diagonal[n * n]
//@ launch fill_diagonal<<<ceil_div(n * n, 256), 256>>>(d, diagonal, n)
//@ launch matmul<<<dim3(ceil_div(m, 16), ceil_div(n, 16)), dim3(16, 16)>>>(diagonal, b, c, n, m, n)
extern "C" __global__ void fill_diagonal(const float *d, float *diagonal, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n * n) diagonal[i] = i / n == i % n ? d[i / n] : 0.0f;
}

extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float as[16][16], bs[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int start = 0; start < k; start += 16) {
        int ak = start + threadIdx.x, bk = start + threadIdx.y;
        as[threadIdx.y][threadIdx.x] = row < m && ak < k ? a[(long long)row * k + ak] : 0.0f;
        bs[threadIdx.y][threadIdx.x] = bk < k && col < n ? b[(long long)bk * n + col] : 0.0f;
        __syncthreads();
        for (int l = 0; l < 16; l++) sum += as[threadIdx.y][l] * bs[l][threadIdx.x];
        __syncthreads();
    }
    if (row < m && col < n) c[(long long)row * n + col] = sum;
}
