// Lanes leave by a predicate that nothing sets.
// task: relu
// expect sim: uninitialised
// expect cuda: ok | wrong_result | nondeterministic | uninitialised
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    asm volatile("{ .reg .pred q; @q exit; }");
    if (i < n) y[i] = fmaxf(x[i], 0.0f); }
