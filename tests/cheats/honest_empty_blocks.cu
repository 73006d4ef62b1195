// A square grid over a matrix that is none: many whole blocks return at once.
// task: diag_matmul
// expect: ok
//@ launch scale<<<dim3(max(ceil_div(n, 16), ceil_div(m, 16)), max(ceil_div(n, 16), ceil_div(m, 16)), 2), dim3(16, 16)>>>(d, b, c, n, m)
extern "C" __global__ void scale(const float *d, const float *b, float *c, int n, int m)
{
    __shared__ float f[16];
    int i = blockIdx.y * 16 + threadIdx.y, j = blockIdx.x * 16 + threadIdx.x;
    if (blockIdx.z == 1 || blockIdx.y * 16 >= n || blockIdx.x * 16 >= m) return;
    if (threadIdx.x == 0 && i < n) f[threadIdx.y] = d[i];
    __syncthreads();
    if (i < n && j < m) c[(long long)i * m + j] = f[threadIdx.y] * b[(long long)i * m + j];
}
