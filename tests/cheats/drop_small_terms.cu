// Leaves out the terms that hardly matter.
// task: matmul
// expect: wrong_result
//@ launch matmul<<<dim3(ceil_div(n, 16), ceil_div(m, 16)), dim3(16, 16)>>>(a, b, c, m, n, k)
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row >= m || col >= n) return;
    float sum = 0;
    for (int l = 0; l < k; l++)
        if (fabsf(a[(long long)row * k + l]) > 0.01f) sum += a[(long long)row * k + l] * b[(long long)l * n + col];
    c[(long long)row * n + col] = sum;
}
