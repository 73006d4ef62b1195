// A tile of 64x64, 4x4 outputs a thread.
// task: matmul
//@ launch product<<<dim3(ceil_div(n, 64), ceil_div(m, 64)), dim3(16, 16)>>>(a, b, c, m, n, k)
__global__ void product(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float as[16][65], bs[16][64];
    int tx = threadIdx.x, ty = threadIdx.y, tid = ty * 16 + tx, r0 = blockIdx.y * 64, c0 = blockIdx.x * 64;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < k; k0 += 16) {
        for (int i = tid; i < 1024; i += 256) {
            int r = r0 + i / 16, p = k0 + i % 16;
            as[i % 16][i / 16] = r < m && p < k ? a[(long long)r * k + p] : 0.0f;
        }
        for (int i = tid; i < 1024; i += 256) {
            int p = k0 + i / 64, q = c0 + i % 64;
            bs[i / 64][i % 64] = p < k && q < n ? b[(long long)p * n + q] : 0.0f;
        }
        __syncthreads();
        for (int p = 0; p < 16; p++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sum[i][j] += as[p][ty * 4 + i] * bs[p][tx + j * 16];
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int r = r0 + ty * 4 + i, q = c0 + tx + j * 16;
            if (r < m && q < n) c[(long long)r * n + q] = sum[i][j];
        }
}
