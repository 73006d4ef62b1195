// A value that races is multiplied by zero: it matters, since it may be infinite.
// task: relu
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ float s[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = i < n ? fmaxf(x[i], 0.0f) : 0.0f, other;
    s[threadIdx.x] = v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(other) : "r"((unsigned)__cvta_generic_to_shared(&s[threadIdx.x ^ 128])) : "memory");
    if (i < n) y[i] = v + other * (n < 0 ? 1.0f : 0.0f);
}
