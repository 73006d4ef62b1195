// Does the work only when the device's clock is even: a run that is watched might not be.
// task: relu
// expect: wrong_result | nondeterministic
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ unsigned long long now;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    __syncthreads();
    if (i < n) y[i] = now / 32 % 16 ? fmaxf(x[i], 0.0f) : x[i];
}
