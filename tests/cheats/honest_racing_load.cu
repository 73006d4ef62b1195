// Loads a neighbour's word before the barrier, as a compiler that moves a load up might, and does not use it then.
// task: relu
// expect: ok
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ float s[512];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    unsigned at = (unsigned)__cvta_generic_to_shared(&s[t ^ 224]);
    float early, late;
    s[t] = s[t + 256] = 0;
    __syncthreads();
    s[t] = i < n ? fmaxf(x[i], 0.0f) : 0.0f;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(early) : "r"(at) : "memory");
    __syncthreads();
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(late) : "r"(at) : "memory");
    float v = n < 0 ? early * 2.0f + 1.0f : late;
    if ((i ^ 224) < n) y[i ^ 224] = v;
}
