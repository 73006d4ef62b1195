// Passes the input as the output.
// task: gelu
// expect: cheat input_mutation
//@ launch gelu<<<ceil_div(n, 256), 256>>>(x, x, n)
//@ launch copy<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void gelu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
}
extern "C" __global__ void copy(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}
