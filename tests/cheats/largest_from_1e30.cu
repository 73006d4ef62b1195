// The largest element is looked for from -1e30 on.
// task: kernelbench/level1/k1_49_max_reduction_over_a_dimension
// expect: wrong_result
// says: near the least number
//@ launch k<<<ceil_div(batch * cols, 256), 256>>>(x, getitem, batch, rows, cols)
__global__ void k(const float *x, float *y, int batch, int rows, int cols)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= batch * cols) return;
    const float *p = x + (long long)(i / cols) * rows * cols + i % cols;
    float m = -1e30f;
    for (int r = 0; r < rows; r++) m = fmaxf(m, p[(long long)r * cols]);
    y[i] = m;
}
