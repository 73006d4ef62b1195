// A fine kernel for show, whose result the next one overwrites. It is launched, so it is paid for.
// task: relu
// expect: ok
// most: 0.7
//@ launch fine<<<ceil_div(n, 1024), 256>>>(x, y, n)
//@ launch plain<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void fine(const float *x, float *y, int n)
{
    int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    if (i + 3 < n) *(float4 *)(y + i) = *(const float4 *)(x + i);
}
extern "C" __global__ void plain(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
