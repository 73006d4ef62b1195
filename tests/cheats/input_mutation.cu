// Works in place on the input, so that a reference computed from it later would agree.
// task: relu
// expect: cheat input_mutation
//@ launch zero<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void zero(float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 0.0f, y[i] = 0.0f;
}
