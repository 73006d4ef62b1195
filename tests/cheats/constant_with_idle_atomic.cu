// An atomic whose value nobody uses, so that the sampled outputs of the timed size might count as incomplete.
// task: relu
// expect sim: wrong_result
// expect cuda: wrong_result
__device__ int idle;
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0) atomicAdd(&idle, 1);
    if (i < n) y[i] = n > 1000000 ? 1.0f : fmaxf(x[i], 0.0f);
}
