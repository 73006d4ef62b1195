// Takes the largest of the first 32 elements for that of the row.
// task: softmax
// expect: wrong_result
//@ launch softmax<<<rows, 32>>>(x, y, cols)
extern "C" __global__ void softmax(const float *x, float *y, int cols)
{
    const float *row = x + (long long)blockIdx.x * cols;
    float top = threadIdx.x < cols ? row[threadIdx.x] : -INFINITY, sum = 0;
    for (int d = 16; d; d /= 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, d));
    for (int c = threadIdx.x; c < cols; c += 32) sum += expf(row[c] - top);
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    for (int c = threadIdx.x; c < cols; c += 32) y[(long long)blockIdx.x * cols + c] = expf(row[c] - top) / sum;
}
