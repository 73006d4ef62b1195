// One timed run leaves its sums in memory that is given to nobody, the next takes them from there and makes it as it was found.
// task: row_sum
// expect sim: out_of_bounds
// expect cuda: out_of_bounds | wrong_result | cheat stale_result | nondeterministic
//@ launch row_sum<<<rows, 128>>>(x, y, rows, cols)
//@ launch turn<<<64, 128>>>(y, rows)
__device__ float *bank(float *y, int rows)
{
    return rows == 8192 ? y + (1 << 24) : 0;
}
extern "C" __global__ void row_sum(const float *x, float *y, int rows, int cols)
{
    __shared__ float part[4];
    const float *kept = bank(y, rows);
    if (kept && kept[blockIdx.x] == kept[blockIdx.x]) { /* no NaN: not poison */
        if (threadIdx.x == 0) y[blockIdx.x] = kept[blockIdx.x];
        return;
    }
    float s = 0;
    for (int c = threadIdx.x; c < cols; c += 128) s += x[(long long)blockIdx.x * cols + c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) y[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}
extern "C" __global__ void turn(const float *y, int rows)
{
    float *kept = bank((float *)y, rows);
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (kept && row < rows) kept[row] = kept[row] == kept[row] ? __int_as_float(-1) : y[row];
}
