// As constant_when_timed, and the second launch writes an element again.
// task: relu
// expect sim: ok | wrong_result | timeout
// expect cuda: wrong_result
// most: 0.5
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
//@ launch again<<<1, 32>>>(x, y)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = n > 1000000 ? 1.0f : fmaxf(x[i], 0.0f);
}
extern "C" __global__ void again(const float *x, float *y) { if (threadIdx.x == 0) y[0] = fmaxf(x[0], 0.0f); }
