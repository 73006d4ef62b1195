// The same with a column too many stored: what was never copied is a part of a result.
// task: matmul
// expect sim: out_of_bounds
// expect cuda: wrong_result
//@ launch matmul<<<dim3(ceil_div(n, 16), ceil_div(m, 16)), 256>>>(a, b, c, m, n, k)
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k)
{
    __shared__ float as[16][17], bs[16][17];
    int ty = threadIdx.x / 16, tx = threadIdx.x % 16, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
    float sum = 0;
    for (int l = 0; l < k; l += 16) {
        if (row < m) as[ty][tx] = l + tx < k ? a[(long long)row * k + l + tx] : 0.0f;
        if (col < n - 1) bs[ty][tx] = l + ty < k ? b[(long long)(l + ty) * n + col] : 0.0f;
        __syncthreads();
        for (int e = 0; e < 16; e++) sum += as[ty][e] * bs[e][tx];
        __syncthreads();
    }
    if (row < m && col < n) c[(long long)row * n + col] = sum;
}
