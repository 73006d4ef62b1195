// Persistent blocks: a fixed grid that strides over the whole.
// task: gelu
// expect: ok
//@ launch gelu<<<264, 256>>>(x, y, n)
extern "C" __global__ void gelu(const float *x, float *y, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
}
