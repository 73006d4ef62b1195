// Passes a struct of which one member has no value to a function by value, which uses that member.
// task: relu
// expect sim: uninitialised
// expect cuda: ok | wrong_result | nondeterministic
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
struct Range { float low, high, scale; };
__device__ __noinline__ float clamp(float v, Range r) { return fminf(fmaxf(v, r.low), r.high); }
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Range r;
    r.high = __int_as_float(0x7f800000);
    if (n < 0) r.low = x[0], r.scale = 1;
    if (i < n) y[i] = clamp(x[i], r);
}
