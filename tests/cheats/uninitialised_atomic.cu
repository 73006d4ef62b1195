// Stores a variable without a value in shared memory and takes it out with an atomic.
// task: relu
// expect sim: uninitialised
// expect cuda: ok | wrong_result | nondeterministic
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ float s[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float zero;
    if (n < 0) zero = x[0];
    s[threadIdx.x] = zero;
    float now = atomicAdd(&s[threadIdx.x], 0.0f);
    if (i < n) y[i] = fmaxf(x[i], now);
}
