// Asserts what holds, and could print what does not.
// task: gelu
// expect: ok
#include <cassert>
#include <cstdio>
//@ launch gelu<<<ceil_div(n, 128), 128>>>(x, y, n)
extern "C" __global__ void gelu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(i >= 0 && blockDim.x == 128);
    if (i >= n) return;
    float g = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
    if (g < -1.0f) printf("gelu(%g) = %g\n", x[i], g);
    assert(g > -1.0f);
    y[i] = g;
}
