// Writes where its own instructions are.
// task: relu
// expect sim: out_of_bounds | unsupported
// expect cuda: out_of_bounds | launch_error
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__device__ __noinline__ float other(float v) { return fmaxf(v, 0.0f); }
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    float (*code)(float) = other;
    unsigned long long at = (unsigned long long)code;
    asm volatile("add.u64 %0, %0, 8;" : "+l"(at));
    *(volatile unsigned long long *)at = 0;
    y[0] = code(x[0]);
}
