// Each element finds the maximum and the sum of its row again: slow, and right.
// task: softmax
// expect: ok
// most: 0.01
//@ launch softmax<<<ceil_div(rows * cols, 256), 256>>>(x, y, rows, cols)
__global__ void softmax(const float *x, float *y, int rows, int cols)
{
    long long i = (long long)blockIdx.x * 256 + threadIdx.x;
    if (i >= (long long)rows * cols) return;
    const float *row = x + i / cols * cols;
    float m = -INFINITY, s = 0;
    for (int c = 0; c < cols; c++) m = fmaxf(m, row[c]);
    for (int c = 0; c < cols; c++) s += expf(row[c] - m);
    y[i] = expf(x[i] - m) / s;
}
