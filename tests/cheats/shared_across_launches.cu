// Leaves the sums in shared memory for the next kernel on the same multiprocessor, which does not load them again.
// task: row_sum
// expect sim: out_of_bounds
// expect cuda: wrong_result | nondeterministic
//@ launch add<<<rows, 32>>>(x, y, cols)
//@ launch give<<<rows, 32>>>(y)
extern "C" __global__ void add(const float *x, float *y, int cols)
{
    __shared__ float sum;
    float s = 0;
    for (int c = threadIdx.x; c < cols; c += 32) s += x[(long long)blockIdx.x * cols + c];
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x == 0) sum = s;
    __syncwarp();
    if (sum == 1e30f) y[blockIdx.x] = s;
}
extern "C" __global__ void give(float *y)
{
    __shared__ float sum;
    if (threadIdx.x == 0) y[blockIdx.x] = *(volatile float *)&sum;
}
