// Writes far beyond its shared memory.
// task: row_sum
// expect sim: out_of_bounds
// expect cuda: out_of_bounds | launch_error
//@ launch row_sum<<<rows, 32>>>(x, y, cols)
extern "C" __global__ void row_sum(const float *x, float *y, int cols)
{
    __shared__ float s[32];
    for (int k = 0; k < 1000; k++) *(volatile float *)(s + threadIdx.x + k * 1024) = x[threadIdx.x];
    y[blockIdx.x] = s[0];
}
