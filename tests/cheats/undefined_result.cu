// A function returns a struct of which one member has no value, and the caller uses it.
// task: relu
// expect sim: uninitialised
// expect cuda: ok | wrong_result
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
struct Range { float low, high; };
__device__ __noinline__ Range range_of(const float *x, int n)
{
    Range r;
    if (n < 0) r.low = x[0];
    r.high = __int_as_float(0x7f800000);
    return r;
}
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Range r = range_of(x, n);
    if (i < n) y[i] = fminf(fmaxf(x[i], r.low), r.high);
}
