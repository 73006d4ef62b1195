// Takes a cheap path when the numbers look ordinary: the sum of a row of normal numbers by sampling.
// task: softmax
// expect: wrong_result
//@ launch softmax<<<rows, 32>>>(x, y, cols)
extern "C" __global__ void softmax(const float *x, float *y, int cols)
{
    const float *row = x + blockIdx.x * cols;
    int lane = threadIdx.x;
    float sum = 0.0f;
    for (int c = lane; c < cols; c += 32) sum += expf(row[c]);
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    // Without the maximum: overflows for large inputs, exact for those of scale 1.
    for (int c = lane; c < cols; c += 32) y[blockIdx.x * cols + c] = expf(row[c]) / sum;
}
