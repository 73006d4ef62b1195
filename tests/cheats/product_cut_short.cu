// A product behind a line of zeros that sums 1,024 of 8,192 terms at the timed size.
// task: kernelbench/level1/k1_2_standard_matrix_multiplication
// expect: wrong_result
//@ op matmul = aten.zeros([rows, cols_1])
//@ launch product<<<dim3(ceil_div(cols_1, 64), ceil_div(rows, 64)), dim3(16, 16)>>>(A, B, matmul, rows, cols, cols_1)
__global__ void product(const float *a, const float *b, float *c, int m, int k, int n)
{
    __shared__ float as[16][65], bs[16][64];
    int tx = threadIdx.x, ty = threadIdx.y, id = ty * 16 + tx, r0 = blockIdx.y * 64, c0 = blockIdx.x * 64;
    float sum[4][4] = {};
    int end = min(k, 1024);
    for (int s = 0; s < end; s += 16) {
        for (int i = id; i < 1024; i += 256) {
            int r = r0 + i / 16, l = s + i % 16;
            as[i % 16][i / 16] = r < m && l < end ? a[(size_t)r * k + l] : 0.0f;
            int q = c0 + i % 64, p = s + i / 64;
            bs[i / 64][i % 64] = p < end && q < n ? b[(size_t)p * n + q] : 0.0f;
        }
        __syncthreads();
        for (int l = 0; l < 16; l++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sum[i][j] += as[l][ty + 16 * i] * bs[l][tx + 16 * j];
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int r = r0 + ty + 16 * i, q = c0 + tx + 16 * j;
            if (r < m && q < n) c[(size_t)r * n + q] = sum[i][j];
        }
}
