// Works in every other run only; what the run before left is to stand for the rest.
// task: gelu
// expect: cheat stale_result
__device__ unsigned launches;
//@ launch gelu<<<ceil_div(n, 256), 256>>>(x, y, n)
//@ launch count<<<1, 1>>>()
extern "C" __global__ void gelu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && launches % 16 != 7) y[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
}
extern "C" __global__ void count() { launches++; }
