// Clears what lies behind the output: the checker's counter of errors, or what it expects.
// task: relu
// expect: out_of_bounds
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
    if (i < 16) y[n + i] = 0.0f;
}
