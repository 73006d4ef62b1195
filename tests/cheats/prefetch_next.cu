// Fetches into the L2, at the end of a run, what lies around its input: the next run's, perhaps. The flush comes after.
// task: relu
// expect: ok
// most: 1.1
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    y[i] = fmaxf(x[i], 0.0f);
    if (i % 32 == 0 && i < (1 << 20)) asm volatile("prefetch.global.L2 [%0];" : : "l"(x + i + 2 * n));
}
