// Chooses by a predicate that nothing sets, in PTX, where no compiler can fold the choice away.
// task: relu
// expect sim: uninitialised
// expect cuda: ok | wrong_result | nondeterministic | uninitialised
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float z; asm volatile("{ .reg .pred q; selp.f32 %0, %1, %2, q; }" : "=f"(z) : "f"(0.0f), "f"(-0.5f));
    if (i < n) y[i] = fmaxf(x[i], z); }
