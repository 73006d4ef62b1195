// Passes a variable without a value to a function, which uses it.
// task: relu
// expect sim: uninitialised
// expect cuda: ok | wrong_result | nondeterministic
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
__device__ __noinline__ float floor_at(float v, float low) { return fmaxf(v, low); }
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float low;
    if (n < 0) low = x[0];
    if (i < n) y[i] = floor_at(x[i], low);
}
