// Calls itself until the stack ends.
// task: row_sum
// expect sim: launch_error
// expect cuda: launch_error | out_of_bounds
//@ launch row_sum<<<rows, 32>>>(x, y, cols)
__device__ __noinline__ float sum(const float *x, int n)
{
    volatile float kept[64];
    kept[n & 63] = x[n & 15];
    return sum(x, n + 1) + kept[n & 63];
}
extern "C" __global__ void row_sum(const float *x, float *y, int cols) { y[blockIdx.x] = sum(x, cols); }
