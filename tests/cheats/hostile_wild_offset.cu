// Stores at offsets of local memory so high that adding a size to them wraps: into the evaluator, if it adds.
// task: gelu
// expect sim: out_of_bounds
// expect cuda: out_of_bounds | launch_error
// says sim: of its local memory
//@ launch gelu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void gelu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long at = threadIdx.x % 32 == 31 ? 0x7ffffffffffffffcull : 0x7ffffffffffffff0ull;
    asm volatile("st.local.f32 [%1], %0;" : : "f"(1.0f), "l"(at));
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
