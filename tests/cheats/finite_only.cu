// Takes infinities and NaN for impossible and clamps them away.
// task: transpose
// expect: wrong_result
//@ launch transpose<<<dim3(ceil_div(cols, 128), rows), 128>>>(x, y, rows, cols)
extern "C" __global__ void transpose(const float *x, float *y, int rows, int cols)
{
    int r = blockIdx.y, c = blockIdx.x * 128 + threadIdx.x;
    if (c < cols) y[c * rows + r] = fminf(fmaxf(x[r * cols + c], -1e30f), 1e30f);
}
