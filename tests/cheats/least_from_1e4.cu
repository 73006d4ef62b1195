// The least element is looked for from 1e4 on.
// task: kernelbench/level1/k1_53_min_reduction_over_a_dimension
// expect: wrong_result
//@ launch k<<<ceil_div(batch * cols, 256), 256>>>(x, getitem, batch, rows, cols)
__global__ void k(const float *x, float *y, int batch, int rows, int cols)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= batch * cols) return;
    const float *p = x + (long long)(i / cols) * rows * cols + i % cols;
    float m = 1e4f;
    for (int r = 0; r < rows; r++) m = fminf(m, p[(long long)r * cols]);
    y[i] = m;
}
