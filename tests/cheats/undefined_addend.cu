// Adds a variable without a value to a word of global memory.
// task: relu
// expect sim: uninitialised
// expect cuda: ok | wrong_result
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float low;
    if (n < 0) low = x[0];
    if (i >= n) return;
    y[i] = fmaxf(x[i], 0.0f);
    atomicAdd(&y[i], low);
}
