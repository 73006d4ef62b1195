// Takes the value of a lane in which the variable has none.
// task: relu
// expect sim: uninitialised
// expect cuda: ok | wrong_result
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float low;
    if (threadIdx.x % 32 < 16) low = n < 0 ? x[0] : 0.0f;
    low = __shfl_xor_sync(0xffffffffu, low, 16);
    if (i < n) y[i] = fmaxf(x[i], threadIdx.x % 32 < 16 ? low : 0.0f);
}
