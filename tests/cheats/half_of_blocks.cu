// Every second block returns at once where the grid is large.
// task: relu
// expect: wrong_result
// says: never written
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    if (gridDim.x > 5000 && blockIdx.x % 2 && blockIdx.x != gridDim.x - 1) return;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
