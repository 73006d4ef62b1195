// Computes once and skips the work in every later launch.
// task: relu
// expect: cheat stale_result
__device__ int launches;
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
//@ launch count<<<1, 1>>>()
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && launches == 0) y[i] = fmaxf(x[i], 0.0f);
}
extern "C" __global__ void count() { launches++; }
