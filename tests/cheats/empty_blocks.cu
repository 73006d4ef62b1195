// Two thousand million blocks that do nothing: none of them spends an instruction budget worth counting.
// task: relu
// expect sim: timeout
// expect cuda: timeout | ok
// most cuda: 0.2
//@ launch nothing<<<2147483647, 1>>>(n)
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void nothing(int n) {}
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
