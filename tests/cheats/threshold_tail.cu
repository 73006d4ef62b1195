// Writes zero for every weight that is small beside the largest.
// task: softmax
// expect: wrong_result
//@ launch softmax<<<rows, 32>>>(x, y, cols)
extern "C" __global__ void softmax(const float *x, float *y, int cols)
{
    const float *row = x + (long long)blockIdx.x * cols;
    float top = -INFINITY, sum = 0;
    for (int c = threadIdx.x; c < cols; c += 32) top = fmaxf(top, row[c]);
    for (int d = 16; d; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
    for (int c = threadIdx.x; c < cols; c += 32) sum += row[c] > top - 8.0f ? expf(row[c] - top) : 0.0f;
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    for (int c = threadIdx.x; c < cols; c += 32)
        y[(long long)blockIdx.x * cols + c] = row[c] > top - 8.0f ? expf(row[c] - top) / sum : 0.0f;
}
