// Looks for the expected output behind the input buffer.
// task: relu
// expect sim: out_of_bounds
// expect cuda: wrong_result | out_of_bounds
//@ launch scan<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void scan(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i + n + 4096], 0.0f);
}
