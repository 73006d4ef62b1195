// Writes zeros everywhere, then the positive ones over them.
// task: relu
// expect: ok
//@ launch zero<<<ceil_div(n, 256), 256>>>(y, n)
//@ launch keep<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void zero(float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0.0f;
}
extern "C" __global__ void keep(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0.0f) y[i] = x[i];
}
