// Uses what an earlier block left in shared memory, volatile so that no check of order looks at it.
// task: relu
// expect sim: out_of_bounds
// expect cuda: ok
// says sim: no thread of the block has written
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    __shared__ volatile float s[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float zero = s[threadIdx.x] == 1e30f ? 1.0f : 0.0f;
    if (i < n) y[i] = fmaxf(x[i], zero);
}
