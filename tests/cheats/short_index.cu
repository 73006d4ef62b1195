// Counts elements in 16 bits: right as long as there are few.
// task: relu
// expect: wrong_result
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    unsigned short i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f); }
