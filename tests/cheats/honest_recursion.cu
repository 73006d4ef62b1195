// A sum by halves that calls itself, ten deep.
// task: row_sum
// expect: ok
//@ launch row_sum<<<ceil_div(rows, 32), 32>>>(x, y, rows, cols)
__device__ __noinline__ float sum(const float *x, int n)
{
    if (n > 8) return sum(x, n / 2) + sum(x + n / 2, n - n / 2);
    float s = 0;
    for (int i = 0; i < n; i++) s += x[i];
    return s;
}
extern "C" __global__ void row_sum(const float *x, float *y, int rows, int cols)
{
    int r = blockIdx.x * 32 + threadIdx.x;
    if (r < rows) y[r] = sum(x + (long long)r * cols, cols);
}
