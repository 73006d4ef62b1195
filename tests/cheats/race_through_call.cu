// Hands a value that races to a function that is not inlined.
// task: relu
// expect sim: race
// expect cuda: ok | wrong_result | nondeterministic
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__device__ __noinline__ float pass(float a) { return a; }
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ float s[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = i < n ? fmaxf(x[i], 0.0f) : 0.0f;
    float other;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(other) : "r"((unsigned)__cvta_generic_to_shared(&s[threadIdx.x ^ 128])) : "memory");
    other = pass(other);
    if ((i ^ 128) < n) y[i ^ 128] = other;
    if (i < n) y[i] = s[threadIdx.x];
}
