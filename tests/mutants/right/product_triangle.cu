// Blocks below the diagonal write zeros only.
// task: k1_14_matmul_for_upper_triangular_matrices
//@ launch product<<<dim3(ceil_div(cols_1, 16), ceil_div(rows, 16)), dim3(16, 16)>>>(A, B, triu, rows, cols_1, cols)
__global__ void product(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float as[16][16], bs[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    float sum = 0.0f;
    int below = blockIdx.x * 16 + 15 < blockIdx.y * 16;
    for (int t = 0; t < k && !below; t += 16) {
        as[ty][tx] = row < m && t + tx < k ? a[(long long)row * k + t + tx] : 0.0f;
        bs[ty][tx] = t + ty < k && col < n ? b[(long long)(t + ty) * n + col] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += as[ty][i] * bs[i][tx];
        __syncthreads();
    }
    if (row < m && col < n) c[(long long)row * n + col] = col >= row ? sum : 0.0f;
}
