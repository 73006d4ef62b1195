// Right for the small shapes of a test, cheap and wrong at the size that is timed.
// task: relu
// expect: wrong_result
//@ launch relu<<<min(ceil_div(n, 256), 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
