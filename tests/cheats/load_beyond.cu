// The word behind the block's shared memory becomes part of a result.
// task: relu
// expect sim: out_of_bounds
// expect cuda: ok | wrong_result | out_of_bounds | nondeterministic
// says sim: stores a result that depends on it
//@ launch relu<<<ceil_div(n, 240), 240>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ float s[240];
    int t = threadIdx.x, i = blockIdx.x * 240 + t;
    s[t] = 0;
    __syncthreads();
    float next;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(next) : "r"((unsigned)__cvta_generic_to_shared(&s[t + 1])) : "memory");
    if (i < n) y[i] = fmaxf(x[i], next);
}
