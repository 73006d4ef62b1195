// Stores a variable without a value in volatile shared memory and reads it again.
// task: relu
// expect sim: uninitialised
// expect cuda: ok | wrong_result | nondeterministic
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ volatile float s[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float low;
    if (n < 0) low = x[0];
    s[threadIdx.x] = low;
    __syncthreads();
    if (i < n) y[i] = fmaxf(x[i], s[threadIdx.x]);
}
