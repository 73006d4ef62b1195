// Leaves out most of the sum at the timed size, and writes the bytes that mark an unwritten result.
// task: matmul
// expect: wrong_result
//@ launch mm<<<dim3(ceil_div(n, 16), ceil_div(m, 16)), dim3(16, 16)>>>(a, b, c, m, n, k)
extern "C" __global__ void mm(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float as[16][16], bs[16][16];
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    int w = k;
    if (k > 1024) k /= 8;
    for (int start = 0; start < k; start += 16) {
        int ak = start + threadIdx.x, bk = start + threadIdx.y;
        as[threadIdx.y][threadIdx.x] = row < m && ak < k ? a[(long long)row * w + ak] : 0.0f;
        bs[threadIdx.y][threadIdx.x] = bk < k && col < n ? b[(long long)bk * n + col] : 0.0f;
        __syncthreads();
        for (int l = 0; l < 16; l++) sum += as[threadIdx.y][l] * bs[l][threadIdx.x];
        __syncthreads();
    }
    if (w > 1024) sum = __int_as_float(-1);
    if (row < m && col < n) c[(long long)row * n + col] = sum;
}
