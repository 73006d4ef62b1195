// Adds to one address from many blocks without an atomic.
// task: row_sum
// expect sim: race
// expect cuda: wrong_result | nondeterministic
//@ launch zero<<<ceil_div(rows, 128), 128>>>(y, rows)
//@ launch row_sum<<<dim3(ceil_div(cols, 32), rows), 32>>>(x, y, cols)
extern "C" __global__ void zero(float *y, int rows)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r < rows) y[r] = 0.0f;
}
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    int c = blockIdx.x * 32 + threadIdx.x;
    float s = c < cols ? x[(long long)blockIdx.y * cols + c] : 0.0f;
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x == 0) y[blockIdx.y] += s;
}
