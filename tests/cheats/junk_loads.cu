// Loads what it has just loaded again and again, so that of all its loads few come from far away. None of them shortens the wait for
// those that do.
// task: relu
// expect: ok
// most sim: 0.81
// most cuda: 1.1
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float v = x[i], again;
    #pragma unroll
    for (int k = 0; k < 8; k++) asm volatile("ld.global.f32 %0, [%1];" : "=f"(again) : "l"(x + i));
    y[i] = fmaxf(v, 0.0f);
}
