// Each block also writes the next block's elements, wrongly. The block that writes last decides.
// task: relu
// expect sim: race
// expect cuda: wrong_result | nondeterministic | race
//@ launch relu<<<ceil_div(n, 128), 256>>>(x, y, n)
extern "C" __global__ void relu(const float *x, float *y, int n)
{
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) y[i] = threadIdx.x < 128 ? fmaxf(x[i], 0.0f) : 0.5f; }
