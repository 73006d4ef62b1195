// Rows of both matrices, tiles of 32x32, four outputs a thread.
// task: k1_17_matmul_with_transposed_b
//@ launch product<<<dim3(ceil_div(rows_1, 32), ceil_div(rows, 32)), dim3(32, 8)>>>(A, B, matmul, rows, rows_1, cols)
__global__ void product(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float as[32][33], bs[32][33];
    int tx = threadIdx.x, ty = threadIdx.y, r0 = blockIdx.y * 32, c0 = blockIdx.x * 32;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (int t = 0; t < k; t += 32) {
        for (int i = ty; i < 32; i += 8) {
            as[i][tx] = r0 + i < m && t + tx < k ? a[(long long)(r0 + i) * k + t + tx] : 0.0f;
            bs[i][tx] = c0 + i < n && t + tx < k ? b[(long long)(c0 + i) * k + t + tx] : 0.0f;
        }
        __syncthreads();
        for (int p = 0; p < 32; p++)
            for (int i = 0; i < 4; i++) sum[i] += as[ty + i * 8][p] * bs[tx][p];
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        if (r0 + ty + i * 8 < m && c0 + tx < n) c[(long long)(r0 + ty + i * 8) * n + c0 + tx] = sum[i];
}
