// Two warps wait at different barriers, each for the other.
// task: relu
// expect sim: race | timeout
// expect cuda: timeout
//@ launch relu<<<ceil_div(n, 64), 64>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;" ::: "memory");
    else asm volatile("bar.sync 2, 64;" ::: "memory");
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
