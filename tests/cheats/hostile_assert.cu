// An assertion that does not hold.
// task: relu
// expect: launch_error
#include <assert.h>
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    assert(i != 17);
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
