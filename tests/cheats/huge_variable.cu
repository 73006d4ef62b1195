// Leaves no memory for the task's tensors, which would be the evaluator's failure.
// task: relu
// expect: launch_error
// says sim: variable big
__device__ char big[2040u * 1048576u];
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
    if (n < 0) big[i] = 1;
}
