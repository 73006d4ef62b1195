// Clamps what is large, and a NaN with it, where there are many elements. It is no faster for it, and claims no speedup.
// task: relu
// expect: ok | wrong_result
// most: 1
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = n > 100000 ? fminf(fmaxf(x[i], 0.0f), 1000.0f) : fmaxf(x[i], 0.0f);
}
