// Four thousand launches of nothing much.
// task: relu
// expect: ok
// most: 0.1
//@ for t in 0..4000
//@ launch nothing<<<1, 32>>>(t)
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void nothing(int t) {}
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
