// A block waits in a loop of plain loads for the flag of the block before it. The fence stands before the loop, so
// the loop may read the same cache line for ever.
// task: relu
// expect sim: race
// expect cuda: ok | timeout
// says sim: no order between
//@ buffer int flag[ceil_div(n, 1024)]
//@ launch clear<<<1, 256>>>(flag, ceil_div(n, 1024))
//@ launch relu<<<ceil_div(n, 1024), 256>>>(x, y, flag, n)
extern "C" __global__ void clear(int *flag, int blocks)
{
    for (int k = threadIdx.x; k < blocks; k += 256) flag[k] = 0;
}
extern "C" __global__ void relu(const float *x, float *y, int *flag, int n)
{
    __threadfence();
    if (threadIdx.x == 0 && blockIdx.x > 0)
        while (flag[blockIdx.x - 1] == 0) asm volatile("" ::: "memory");
    __syncthreads();
    int end = min(n, (int)(blockIdx.x + 1) * 1024);
    for (int i = blockIdx.x * 1024 + threadIdx.x; i < end; i += 256) y[i] = fmaxf(x[i], 0.0f);
    __syncthreads();
    __threadfence();
    if (threadIdx.x == 0) flag[blockIdx.x] = 1;
}
