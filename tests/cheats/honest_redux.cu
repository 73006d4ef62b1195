// The maximum by redux.sync, on integers that are ordered as the floats are.
// task: softmax
// expect: ok
#include <limits.h>
//@ launch softmax<<<rows, 32>>>(x, y, cols)
__device__ int ordered(float v) { int b = __float_as_int(v); return b < 0 ? b ^ 0x7fffffff : b; }
extern "C" __global__ void softmax(const float *x, float *y, int cols)
{
    const float *row = x + (long long)blockIdx.x * cols;
    int high = INT_MIN;
    float s = 0;
    for (int c = threadIdx.x; c < cols; c += 32) high = max(high, ordered(row[c]));
    high = __reduce_max_sync(0xffffffffu, high);
    float top = __int_as_float(high < 0 ? high ^ 0x7fffffff : high);
    for (int c = threadIdx.x; c < cols; c += 32) s += expf(row[c] - top);
    for (int d = 16; d; d /= 2) s += __shfl_xor_sync(0xffffffffu, s, d);
    for (int c = threadIdx.x; c < cols; c += 32) y[(long long)blockIdx.x * cols + c] = expf(row[c] - top) / s;
}
