// A sum is not reset behind row 6000, so that the next trip of ten of 264 blocks adds to it: no branch and no size
// of a check shows it.
// task: row_sum
// expect: wrong_result
//@ launch row_sum<<<min(ceil_div(rows, 8), 264), 256>>>(x, y, rows, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int rows, int cols)
{
    float s = 0;
    for (int r = blockIdx.x * 8 + threadIdx.x / 32; r < rows; r += gridDim.x * 8) {
        for (int c = threadIdx.x % 32; c < cols; c += 32) s += x[(long long)r * cols + c];
        float t = s;
        for (int d = 16; d; d /= 2) t += __shfl_xor_sync(~0u, t, d);
        if (threadIdx.x % 32 == 0) y[r] = t;
        s = r < 6000 ? 0 : s;
    }
}
