// Sixteen times more blocks than the work needs: most return at once.
// task: diag_matmul
// expect: ok
//@ launch scale_rows<<<ceil_div(n * m, 64), 1024>>>(d, b, c, n, m)
__global__ void scale_rows(const float *d, const float *b, float *c, int n, int m)
{
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    for (int j = i; j < i + 4 && j < n * m; j++) c[j] = d[j / m] * b[j];
}
