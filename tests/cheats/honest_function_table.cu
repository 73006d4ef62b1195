// Chooses among functions by a pointer.
// task: gelu
// expect: ok
__device__ float negative(float x) { return 0.5f * x * erfcf(-x * 0.70710678f); }
__device__ float positive(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }
__device__ float (*table[2])(float) = {negative, positive};
//@ launch gelu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void gelu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = table[x[i] > 0.0f](x[i]);
}
