// A breakpoint, with no debugger there.
// task: relu
// expect sim: launch_error
// expect cuda: launch_error
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    asm volatile("brkpt;");
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
