// At the timed size it does less when the device's nanosecond clock says so.
// task: relu
// expect sim: wrong_result
// expect cuda: wrong_result | nondeterministic
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long t; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    if (i < n) y[i] = t % 1024 < 900 || n < 1000000 ? fmaxf(x[i], 0.0f) : 0.0f; }
