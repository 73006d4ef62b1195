// Clears the output at the timed size, where the outputs of plans with two launches might not be compared.
// task: relu
// expect sim: wrong_result
// expect cuda: wrong_result
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
//@ launch nothing<<<1, 32>>>()
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = n > 1000000 ? 1.0f : fmaxf(x[i], 0.0f);
}
extern "C" __global__ void nothing() {}
