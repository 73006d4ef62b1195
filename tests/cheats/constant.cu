// Writes what the output is on average instead of computing it.
// task: row_sum
// expect: wrong_result
//@ launch guess<<<ceil_div(rows, 256), 256>>>(y, rows)
extern "C" __global__ void guess(float *y, int rows)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) y[r] = 0.0f;
}
