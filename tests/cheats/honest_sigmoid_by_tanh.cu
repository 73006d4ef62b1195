// The same with a tanh of all bits.
// task: composed/bias_rowmul_sigmoid
// expect: ok
//@ launch k<<<ceil_div(rows * cols, 256), 256>>>(x, bias, factor, y, rows * cols, cols)
extern "C" __global__ void k(const float *x, const float *bias, const float *factor, float *y, int n, int cols)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float q = (x[i] + bias[i % cols]) * factor[i / cols];
    y[i] = 0.5f * tanhf(0.5f * q) + 0.5f;
}
