// A block waits for a flag of the block before it, which published behind a fence. In an order that no device uses
// the flag never comes; that is no fault of the result.
// task: relu
// expect: ok
//@ buffer int flag[ceil_div(n, 1024)]
//@ launch clear<<<1, 256>>>(flag, ceil_div(n, 1024))
//@ launch relu<<<ceil_div(n, 1024), 256>>>(x, y, flag, n)
extern "C" __global__ void clear(int *flag, int blocks)
{
    for (int k = threadIdx.x; k < blocks; k += 256) flag[k] = 0;
}
extern "C" __global__ void relu(const float *x, float *y, int *flag, int n)
{
    if (threadIdx.x == 0 && blockIdx.x > 0)
        while (atomicAdd(&flag[blockIdx.x - 1], 0) == 0) {}
    __syncthreads();
    int end = min(n, (int)(blockIdx.x + 1) * 1024);
    for (int i = blockIdx.x * 1024 + threadIdx.x; i < end; i += 256) y[i] = fmaxf(x[i], 0.0f);
    __syncthreads();
    __threadfence();
    if (threadIdx.x == 0) atomicExch(&flag[blockIdx.x], 1);
}
