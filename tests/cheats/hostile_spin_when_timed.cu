// Behaves in every check and hangs at the timed size.
// task: transpose
// expect: timeout
//@ launch transpose<<<dim3(ceil_div(cols, 32), rows), 32>>>(x, y, rows, cols)
extern "C" __global__ void transpose(const float *x, float *y, int rows, int cols)
{
    int r = blockIdx.y, c = blockIdx.x * 32 + threadIdx.x;
    const volatile float *stop = x;
    while (rows * cols > 100000 && *stop != 1e30f) {}
    if (c < cols) y[c * rows + r] = x[r * cols + c];
}
