// Fills the lowest bits of each result from a register without a value. A comparison does not see them.
// task: relu
// expect sim: uninitialised
// expect cuda: ok | wrong_result | nondeterministic | uninitialised
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = fmaxf(x[i], 0.0f); unsigned u = __float_as_uint(v), o;
    asm volatile("{ .reg .b32 q; bfi.b32 %0, q, %1, 0, 3; }" : "=r"(o) : "r"(u));
    y[i] = v > 0 ? __uint_as_float(o) : 0.0f; }
