// One block works for longer than the whole launch may take in the opposite order.
// task: relu
// expect: ok
//@ launch relu<<<ceil_div(n, 1024), 1024>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * 1024 + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
    if (blockIdx.x) return;
    unsigned u = threadIdx.x;
    for (int k = 0; k < (n > 20000 ? 4000 : 10); k++) {
#pragma unroll
        for (int j = 0; j < 64; j++) asm volatile("mad.lo.u32 %0, %0, %0, %0;" : "+r"(u));
    }
    if (u == 12345 && n == 7) y[i] = u;
}
