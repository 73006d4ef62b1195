// Fills the output with NaN, which a careless comparison skips.
// task: relu
// expect: wrong_result
//@ launch fill<<<ceil_div(n, 256), 256>>>(y, n)
extern "C" __global__ void fill(float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = NAN;
}
