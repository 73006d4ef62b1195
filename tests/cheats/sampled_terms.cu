// Sums every other column and doubles: right on average.
// task: row_sum
// expect: wrong_result
//@ launch row_sum<<<rows, 32>>>(x, y, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    float s = 0;
    for (int c = 2 * threadIdx.x; c < cols; c += 64) s += x[(long long)blockIdx.x * cols + c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x == 0) y[blockIdx.x] = cols > 1 ? 2.0f * s : s;
}
