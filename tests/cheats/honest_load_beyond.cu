// The last thread loads the word behind the block's shared memory, and does not use it. A GPU rounds the 960 bytes
// up to 1,024.
// task: relu
// expect: ok
//@ launch relu<<<ceil_div(n, 240), 240>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ float s[240];
    int t = threadIdx.x, i = blockIdx.x * 240 + t;
    s[t] = i < n ? x[i] : 0;
    __syncthreads();
    float next;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(next) : "r"((unsigned)__cvta_generic_to_shared(&s[t + 1])) : "memory");
    next = fmaxf(next, 0.0f);
    if (t < 239 && i + 1 < n) y[i + 1] = next;
    if (t == 0 && i < n) y[i] = fmaxf(s[0], 0.0f);
}
