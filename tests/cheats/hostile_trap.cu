// Traps in the timed run's size only, after many good ones.
// task: relu
// expect: launch_error
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (n > 100000 && i == n - 1) asm volatile("trap;");
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
