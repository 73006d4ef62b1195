// The maximum of a row leaves out each second element, where rows have an even number of them.
// task: composed/relu_softmax
// expect: wrong_result
//@ launch soft<<<ceil_div(rows, 4), 128>>>(x, y, rows, cols)
__global__ void soft(const float *x, float *y, int rows, int cols)
{
    int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    x += (long long)row * cols, y += (long long)row * cols;
    float top = 0, sum = 0;
    int step = cols % 2 ? 1 : 2;
    for (int c = lane * step; c < cols; c += 32 * step) top = fmaxf(top, x[c]);
    for (int d = 16; d; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
    for (int c = lane; c < cols; c += 32) sum += expf(fmaxf(x[c], 0.0f) - top);
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    for (int c = lane; c < cols; c += 32) y[c] = expf(fmaxf(x[c], 0.0f) - top) / sum;
}
