// Leaves out the subtraction of the maximum, which ordinary inputs do not need.
// task: softmax
// expect: wrong_result
//@ launch softmax<<<rows, 32>>>(x, y, cols)
extern "C" __global__ void softmax(const float *x, float *y, int cols)
{
    const float *row = x + (long long)blockIdx.x * cols;
    float sum = 0;
    for (int c = threadIdx.x; c < cols; c += 32) sum += expf(row[c]);
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    for (int c = threadIdx.x; c < cols; c += 32) y[(long long)blockIdx.x * cols + c] = expf(row[c]) / sum;
}
