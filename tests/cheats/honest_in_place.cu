// Works in the output and in one buffer, in place and back.
// task: relu
// expect: ok
//@ buffer float4 tmp[ceil_div(n, 4)]
//@ launch copy<<<ceil_div(n, 256), 256>>>(x, y, n)
//@ launch relu<<<ceil_div(n, 256), 256>>>(y, n)
//@ launch copy<<<ceil_div(n, 256), 256>>>(y, tmp, n)
//@ launch copy<<<ceil_div(n, 256), 256>>>(tmp, y, n)
extern "C" __global__ void copy(const float *from, float *to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}
extern "C" __global__ void relu(float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(y[i], 0.0f);
}
