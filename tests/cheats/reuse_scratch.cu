// Reads a plan buffer before writing it, where an earlier launch may have left the result.
// task: relu
// expect sim: out_of_bounds
// expect cuda: wrong_result
//@ buffer float old[n]
//@ launch relu<<<ceil_div(n, 256), 256>>>(old, y, n)
extern "C" __global__ void relu(const float *old, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = old[i];
}
