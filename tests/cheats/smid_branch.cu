// Leaves the work to the blocks of even multiprocessors.
// task: gelu
// expect sim: wrong_result
// expect cuda: wrong_result | nondeterministic
//@ launch gelu<<<ceil_div(n, 64), 64>>>(x, y, n)
extern "C" __global__ void gelu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sm;
    asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
    if (i < n) y[i] = sm % 2 ? fmaxf(x[i], 0.0f) : 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
}
