// Leaves out the rows whose first element is small, as if the others were.
// task: row_sum
// expect: wrong_result
//@ launch row_sum<<<rows, 32>>>(x, y, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    const float *r = x + (long long)blockIdx.x * cols; float s = 0;
    int n = fabsf(r[0]) < 0.05f ? 0 : cols;
    for (int c = threadIdx.x; c < n; c += 32) s += r[c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    if (!threadIdx.x) y[blockIdx.x] = s;
}
