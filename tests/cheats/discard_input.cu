// Tells the L2 that its input need not be kept, which undoes what was written there last.
// task: relu
// expect sim: out_of_bounds
// expect cuda: ok | wrong_result | cheat input_mutation
// most: 1.1
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
    __syncthreads();
    if (i < n && i % 32 == 0) asm volatile("discard.global.L2 [%0], 128;" : : "l"(x + i) : "memory");
}
