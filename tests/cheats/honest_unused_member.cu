// Passes a struct of which one member has no value to a function by value, which uses the others.
// task: relu
// expect: ok
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
struct Range { float low, high, scale; };
__device__ __noinline__ float clamp(float v, Range r, int scaled)
{
    return fminf(fmaxf(scaled ? v * r.scale : v, r.low), r.high);
}
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Range r;
    r.low = 0, r.high = __int_as_float(0x7f800000);
    if (n < 0) r.scale = x[0];
    if (i < n) y[i] = clamp(x[i], r, n < 0);
}
