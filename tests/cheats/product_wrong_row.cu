// One row of the product is wrong, in a tile row that a sample meets once in 128 blocks: its block runs
// since it goes a way of its own, and each row of it is compared.
// task: matmul
// expect: wrong_result
// says: elements of c differ
//@ launch k<<<dim3(ceil_div(n, 16), ceil_div(m, 16)), dim3(16, 16)>>>(a, b, c, m, n, k)

extern "C" __global__ void k(const float *a, const float *b, float *c, int m, int cols, int k)
{
    __shared__ float A[16][17], B[16][17];
    int r = blockIdx.y * 16 + threadIdx.y, q = blockIdx.x * 16 + threadIdx.x, n = m;
    float v = 0;
    for (int t = 0; t < k; t += 16) {
        A[threadIdx.y][threadIdx.x] =
            r < m && t + threadIdx.x < k ? a[(long long)r * k + t + threadIdx.x] : 0;
        B[threadIdx.y][threadIdx.x] =
            q < cols && t + threadIdx.y < k ? b[(long long)(t + threadIdx.y) * cols + q] : 0;
        __syncthreads();
        for (int i = 0; i < 16; i++) v += A[threadIdx.y][i] * B[i][threadIdx.x];
        __syncthreads();
    }
    if (r < m && q < cols) c[(long long)r * cols + q] = (r == 1733) ? v * 1.25f + 0.5f : v;
}
