// One block stays on the device to work while no clock runs: a launch has ended when all of its blocks have.
// task: relu
// expect: timeout
__device__ volatile int bell;
//@ launch relu<<<ceil_div(n, 256) + 1, 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x == gridDim.x - 1)
        while (!bell) __nanosleep(1000);
    else if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
