// Reads each element through the read-only cache before the thread that reads it overwrites it.
// task: relu
// expect: ok
//@ launch copy<<<ceil_div(n, 256), 256>>>(x, y, n)
//@ launch relu<<<ceil_div(n, 256), 256>>>(y, y, n)
extern "C" __global__ void copy(const float *__restrict__ x, float *__restrict__ y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __ldg(x + i);
}
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(__ldg(x + i), 0.0f);
}
