// Asks for nearly all of the device's memory, again for each workload.
// task: relu
// expect sim: plan_error
// expect cuda: plan_error | ok
// line sim: 6
//@ buffer char big[2030 * 1048576]
//@ launch relu<<<ceil_div(n, 256), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaxf(x[i], 0.0f);
}
