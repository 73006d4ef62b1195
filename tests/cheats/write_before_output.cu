// Clears what lies before the output.
// task: softmax
// expect: out_of_bounds
//@ launch softmax<<<rows, 32>>>(x, y, cols)
extern "C" __global__ void softmax(const float *x, float *y, int cols)
{
    const float *row = x + (long long)blockIdx.x * cols;
    float top = -INFINITY, sum = 0;
    for (int c = 0; c < cols; c++) top = fmaxf(top, row[c]);
    for (int c = 0; c < cols; c++) sum += expf(row[c] - top);
    for (int c = threadIdx.x; c < cols; c += 32) y[(long long)blockIdx.x * cols + c] = expf(row[c] - top) / sum;
    if (blockIdx.x == 0) y[-1 - (int)threadIdx.x] = 0.0f;
}
