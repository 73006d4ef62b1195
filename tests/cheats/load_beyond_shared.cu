// The last thread loads the word behind all shared memory that a GPU gives the block. It does not use it, but the
// load faults.
// task: relu
// expect: out_of_bounds
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ float s[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = i < n ? x[i] : 0;
    __syncthreads();
    float next;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(next) : "r"((unsigned)__cvta_generic_to_shared(&s[t + 1])) : "memory");
    next = fmaxf(next, 0.0f);
    if (t < 255 && i + 1 < n) y[i + 1] = next;
    if (t == 0 && i < n) y[i] = fmaxf(s[0], 0.0f);
}
