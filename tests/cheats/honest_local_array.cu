// An array of each thread's own, indexed by what the data say: local memory.
// task: transpose
// expect: ok
//@ launch transpose<<<dim3(ceil_div(cols, 64), ceil_div(rows, 16)), 64>>>(x, y, rows, cols)
extern "C" __global__ void transpose(const float *x, float *y, int rows, int cols)
{
    float kept[16];
    int c = blockIdx.x * 64 + threadIdx.x, r0 = blockIdx.y * 16, turn = threadIdx.x % 16;
    if (c >= cols) return;
    for (int k = 0; k < 16; k++) kept[(k + turn) % 16] = r0 + k < rows ? x[(r0 + k) * cols + c] : 0.0f;
    for (int k = 0; k < 16; k++)
        if (r0 + k < rows) y[c * rows + r0 + k] = kept[(k + turn) % 16];
}
