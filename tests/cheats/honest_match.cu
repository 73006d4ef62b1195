// Elements in a line, whatever their row; lanes of equal rows find each other by match and add up among themselves.
// task: row_sum
// expect: ok
//@ launch clear<<<ceil_div(rows, 128), 128>>>(y, rows)
//@ launch add<<<ceil_div(rows * cols, 256), 256>>>(x, y, rows * cols, cols)
extern "C" __global__ void clear(float *y, int rows)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) y[r] = 0.0f;
}
extern "C" __global__ void add(const float *x, float *y, int n, int cols)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    int row = i < n ? i / cols : -1;
    float v = i < n ? x[i] : 0.0f, s = 0;
    unsigned same = __match_any_sync(0xffffffffu, row);
    for (int k = 0; k < 32; k++) {
        float other = __shfl_sync(0xffffffffu, v, k);
        if (same >> k & 1) s += other;
    }
    if (row >= 0 && lane == __ffs(same) - 1) atomicAdd(&y[row], s);
}
