// Reads the other warps' partial sums with no barrier before.
// task: row_sum
// expect sim: race | out_of_bounds
// expect cuda: wrong_result | nondeterministic
//@ launch row_sum<<<rows, 1024>>>(x, y, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    __shared__ float part[32];
    float s = 0;
    for (int c = threadIdx.x; c < cols; c += 1024) s += x[(long long)blockIdx.x * cols + c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    if (threadIdx.x) return;
    for (int k = 1; k < 32; k++) s += part[k];
    y[blockIdx.x] = s;
}
